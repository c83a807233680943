// Runs a PostgreSQL program detached from the terminal's signals, which never outlives this process.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { type Account, ENVIRONMENT } from './account.ts'
import { endServer } from './processes.ts'

// The shell waits on a pipe that only this process holds open, so even kill -9 of this process stops the server: by
// fast shutdown, and after 10 s by immediate shutdown. Only the server keeps descriptor 3, so its end means that the
// last process is gone. The sleep is killed with its subshell, so that no process is left.
const SCRIPT = `
"$@" </dev/null &
server=$!
echo "$server" >&3
exec 3>&-
read -r closed
kill -INT "$server" 2>/dev/null
(
  trap '[ -z "$pause" ] || kill "$pause"; exit' TERM
  sleep 10 & pause=$!
  wait "$pause"
  kill -QUIT "$server"
) 2>/dev/null &
escalation=$!
wait "$server"
code=$?
kill "$escalation" 2>/dev/null
wait "$escalation" 2>/dev/null
exit "$code"
`

export type Supervised = {
  pid: number
  /** The exit code once every process of the program is gone; undefined if its supervisor was killed. */
  gone: Promise<number | undefined>
  end(): Promise<void>
}

export async function supervise(options: {
  command: [program: string, ...rest: string[]]
  data: string
  account: Account | undefined
  log: number
}): Promise<Supervised> {
  const child: ChildProcess = spawn('/bin/sh', ['-c', SCRIPT, 'supervisor', ...options.command], {
    ...options.account,
    detached: true,
    cwd: '/',
    env: ENVIRONMENT,
    stdio: ['pipe', options.log, options.log, 'pipe'],
  })
  const leash = child.stdin as Writable
  const life = child.stdio[3] as Readable
  leash.on('error', () => {})
  life.on('error', () => {})
  const exit = once(child, 'exit') as Promise<[number | null]>
  const ended = new Promise<void>((resolve) => life.once('close', resolve))
  let text = ''
  life.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await Promise.race([exit, ended, new Promise((resolve) => life.once('data', resolve))])
  const pid = Number.parseInt(text, 10)

  const gone = (async () => {
    const lifeOver = ended.then(() => leash.destroy())
    const [code] = await exit
    leash.destroy()
    // A killed supervisor doesn't stop its server.
    if (pid > 0) await endServer(pid, options.data)
    // With a timeout: a busy backend doesn't notice that its postmaster was killed.
    await Promise.race([lifeOver, delay(5_000, undefined, { ref: false })])
    life.destroy()
    return code ?? undefined
  })()
  gone.catch(() => {})
  return {
    pid,
    gone,
    end: async () => {
      leash.destroy()
      await gone
    },
  }
}
