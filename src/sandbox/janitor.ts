// Cleans up after a Berth that was killed: a shell that waits for our end, then removes what we could not.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'

export type Janitor = {
  /** Sends it to work now; resolves when it is done. */
  finish(): Promise<void>
}

// It waits on a pipe that only this process holds open. Processes are killed by --die-with-parent; the groups are read
// all the same, for a launcher that had not come that far.
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

export function startJanitor(runDirectory: string, groups: string[]): Janitor {
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'berth-janitor', runDirectory, ...groups], {
    // A session of its own: Ctrl-C in the terminal reaches us alone.
    detached: true,
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const leash = shell.stdin as Socket
  const ended = once(shell, 'exit')
  ended.catch(() => {})
  shell.unref()
  leash.unref()
  leash.on('error', () => {})
  return {
    async finish() {
      shell.ref()
      leash.end()
      await ended
    },
  }
}
