// Tracks a command's processes by an environment variable, if PID namespaces are unavailable.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type Contained, type Containment, type Place, signal } from './containment.ts'

const NAME = 'BERTH_RUN'

/**
 * A shell that waits on a pipe that only Berth holds, for the end of the run or of Berth. It then kills all processes
 * with the marker, in the command's group (whose number comes through the pipe), and their descendants until none is
 * left. awk reads lines of pid, parent, group and state, after lines with only the pids that have the marker. On Linux
 * this works without ps, which small images lack; elsewhere ps -E shows the environment after the command.
 */
const SCRIPT = `
trap '' HUP INT TERM
group=none
while read -r line; do group=$line; done
list() {
  if [ -r /proc/self/stat ]; then
    grep -lzsxF "${NAME}=$MARKER" /proc/[0-9]*/environ | cut -d / -f 3
    cat /proc/[0-9]*/stat | sed 's/^\\([0-9]*\\) (.*) \\(.\\) \\([0-9]*\\) \\([0-9]*\\) .*/\\1 \\3 \\4 \\2/'
  else
    ps -axEww -o pid=,ppid=,pgid=,stat=,command= |
      awk -v marker="$MARKER" 'index($0, "${NAME}=" marker) { print $1 } { print $1, $2, $3, $4 }'
  fi 2>/dev/null
}
left() {
  list | awk -v group="$group" '
    NF == 1 { found[$1] = 1; next }
    $4 ~ /^[ZX]/ { next }
    { parent[$1] = $2; if ($3 == group) found[$1] = 1 }
    END {
      do {
        more = 0
        for (pid in parent) if (!(pid in found) && (parent[pid] in found)) more = found[pid] = 1
      } while (more)
      for (pid in found) if (pid in parent) print pid
    }'
}
tries=0
while pids=$(left) && [ -n "$pids" ] && [ $tries -lt 200 ]; do
  kill -9 $pids 2>/dev/null
  tries=$((tries + 1))
  [ $tries -lt 5 ] || sleep 0.05
done
`

export function openMarkers(): Containment {
  return {
    way: 'marker',
    note: `No PID namespace can be made here: processes are found by ${NAME}, and those escape that clear their environment, leave their group and lose their parent.`,
    start,
  }
}

function start([program, ...rest]: string[], { cwd, environment, stdin }: Place): Contained {
  const marker = randomBytes(12).toString('hex')
  const watcher = spawn('/bin/sh', ['-c', SCRIPT, 'berth-watcher'], {
    detached: true,
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', MARKER: marker },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const input = watcher.stdin as Socket
  const finished = once(watcher, 'exit').catch(() => {})
  input.on('error', () => {})
  const child = spawn(program!, rest, {
    cwd,
    env: { ...environment, [NAME]: marker },
    detached: true,
    stdio: [stdin, 'pipe', 'pipe'],
  }) as unknown as Contained['child']
  if (child.pid !== undefined) input.write(`${child.pid}\n`)
  const send = async (name: NodeJS.Signals) => {
    if (child.pid === undefined) return
    // Also the child itself, which may have joined another group.
    if (!signal(-child.pid, name) || name === 'SIGKILL') child.kill(name)
  }
  return {
    child,
    terminate: () => send('SIGTERM'),
    kill: () => send('SIGKILL'),
    async gone() {
      input.end()
      await finished
    },
    started: () => child.pid !== undefined,
  }
}
