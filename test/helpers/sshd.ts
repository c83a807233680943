// A real sshd on loopback, with the authorized keys that a test sets.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { freePort } from './ports.ts'
import { until } from './until.ts'

export function hasSshd(): boolean {
  try {
    for (const program of ['sshd', 'ssh', 'ssh-keygen']) execFileSync('which', [program])
    return true
  } catch {
    if (process.env.BERTH_REQUIRE_PEERS === '1') throw new Error('sshd is not installed')
    return false
  }
}

export type Sshd = {
  port: number
  /** `<user>@127.0.0.1:<port>`, for URLs. */
  place: string
  /** Authorizes exactly these public keys. */
  letIn(...keys: string[]): Promise<void>
  hostKey(): Promise<string>
  /** Restarts at the same port with another host key. */
  changeHostKey(): Promise<void>
  stop(): Promise<void>
}

export async function startSshd(): Promise<Sshd> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-sshd-'))
  const at = (name: string) => join(directory, name)
  const port = await freePort()
  const program = execFileSync('which', ['sshd'], { encoding: 'utf8' }).trim()
  // Root needs this directory for privilege separation.
  if (process.getuid?.() === 0) await mkdir('/run/sshd', { recursive: true })
  await writeFile(at('keys'), '')
  const settings = [
    ...[`Port ${port}`, 'ListenAddress 127.0.0.1', `HostKey ${at('host')}`, `AuthorizedKeysFile ${at('keys')}`],
    ...[
      'StrictModes no',
      'UsePAM no',
      'PidFile none',
      'PasswordAuthentication no',
      'PermitRootLogin prohibit-password',
    ],
    ...['KbdInteractiveAuthentication no', 'LogLevel ERROR'],
  ]
  await writeFile(at('config'), `${settings.join('\n')}\n`)
  let child: ChildProcess

  async function start(): Promise<void> {
    await rm(at('host'), { force: true })
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at('host')], { stdio: 'ignore' })
    child = spawn(program, ['-D', '-e', '-f', at('config')], { stdio: 'ignore' })
    await until(
      () =>
        new Promise<boolean>((resolve) => {
          const socket = connect(port, '127.0.0.1', () => resolve(!!socket.end()))
          socket.on('error', () => resolve(false))
        }),
      30_000,
    )
  }

  async function end(): Promise<void> {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill()
    await ended
  }

  await start()
  return {
    port,
    place: `${userInfo().username}@127.0.0.1:${port}`,
    letIn: (...keys) => writeFile(at('keys'), keys.map((key) => `${key}\n`).join('')),
    hostKey: async () => (await readFile(at('host.pub'), 'utf8')).split(' ').slice(0, 2).join(' ').trim(),
    async changeHostKey() {
      await end()
      await start()
    },
    async stop() {
      await end()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
