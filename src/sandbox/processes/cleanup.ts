// Cleans up even if Berth is killed: a shell waits until Berth exits, then removes what is left.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'

export type Cleanup = {
  /** Starts the cleanup now; resolves when it is done. */
  finish(): Promise<void>
}

// It waits on a pipe that only this process holds open. --die-with-parent kills most processes. The control groups are
// killed as well, because a launcher may not have set it yet.
const SCRIPT = `
trap '' HUP INT TERM
while read -r line; do :; done
run=$1
shift
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  left=
  for group in "$@"; do
    [ -d "$group" ] || continue
    for pid in $(cat "$group"/*/cgroup.procs); do kill -9 "$pid"; done
    for one in "$group"/*/; do rmdir "$one"; done
    rmdir "$group" || left=1
  done
  [ -z "$left" ] && break
  sleep 0.1
done 2>/dev/null
rm -rf -- "$run"
`

export function startCleanup(runDirectory: string, groups: string[]): Cleanup {
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'berth-cleanup', runDirectory, ...groups], {
    // In its own session, so that Ctrl-C in the terminal does not reach it.
    detached: true,
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const input = shell.stdin as Socket
  const ended = once(shell, 'exit')
  ended.catch(() => {})
  shell.unref()
  input.unref()
  input.on('error', () => {})
  return {
    async finish() {
      shell.ref()
      input.end()
      await ended
    },
  }
}
