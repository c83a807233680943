// The nameservers as processes: ours compiled, started by its CLI; Knot and PowerDNS in temporary directories.
import { execFile, spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../children.ts'
import { findProgram } from '../programs.ts'
import { answersWithin } from './client.ts'
import { signingEnvironment, writePresigned } from './signed.ts'
import { zoneName } from './zones.ts'

const execute = promisify(execFile)

export type Server = {
  name: string
  /** The ports it listens on; the first is measured. */
  ports: number[]
  /** From process start to the first answer. */
  startMs: number
  residentBytes(): Promise<number>
  /** CPU time of all its processes since their start; NaN if the system doesn't report it. */
  cpuMs(): Promise<number>
  stop(): Promise<void>
}

type Command = { name: string; program: string; args: string[]; cwd: string; env?: NodeJS.ProcessEnv; ports: number[] }

/** The prefix of databases with signed zones. */
export const signedName = 'signed'
export const floorName = 'Node’s echo'
const processors = availableParallelism()
// A large zone may have to be signed first.
const startTimeoutMs = 300_000
// The unit of /proc/<pid>/stat is a hundredth of a second on every Linux.
const tickMs = 10

export async function startOurs(program: string, directory: string, name: string, url: string): Promise<Server> {
  const cwd = join(directory, name)
  await mkdir(cwd)
  const ports = [await freePort(), await freePort()]
  const env = {
    PATH: process.env.PATH,
    DRAIN_SECONDS: '0',
    METRICS_PORT: '0',
    DATABASE_URL: url,
    DATA_DIR: cwd,
    NAMESERVER_LISTEN: ports.map((port) => `127.0.0.1:${port}`).join(','),
    ...(name.startsWith(signedName) && signingEnvironment),
  }
  // For a profile: BENCH_NODE_ARGS='--cpu-prof --cpu-prof-dir=profiles'.
  const nodeArgs = (process.env.BENCH_NODE_ARGS ?? '').split(' ').filter((arg) => arg !== '')
  const args = [...nodeArgs, program, 'serve', '--roles', 'nameserver']
  return start({ name: 'Berth', program: process.execPath, args, cwd, env, ports })
}

/** No nameserver, but the cost of Node's sockets alone. */
export async function startFloor(directory: string): Promise<Server> {
  const port = await freePort()
  const args = [join(import.meta.dirname, 'floor.ts'), String(port), String(processors)]
  return start({ name: floorName, program: process.execPath, args, cwd: directory, ports: [port] })
}

/** Null if it isn't installed. */
export async function startKnot(directory: string, zones: string, size: number): Promise<Server | null> {
  const program = findProgram('knotd')
  if (program === null) return null
  const cwd = await mkdtemp(join(directory, 'knot-'))
  const port = await freePort()
  const config = `server:
    rundir: "${cwd}"
    listen: 127.0.0.1@${port}
    udp-workers: ${processors}
log:
  - target: stderr
    any: warning
database:
    storage: "${cwd}"
template:
  - id: default
    storage: "${zones}"
    file: "%s.zone"
    zonefile-sync: -1
    journal-content: none
zone:
${numbers(size)
  .map((number) => `  - domain: ${zoneName(number)}\n`)
  .join('')}`
  await writeFile(join(cwd, 'knot.conf'), config)
  return start({ name: 'Knot', program, args: ['-c', join(cwd, 'knot.conf')], cwd, ports: [port] })
}

/** Null if it, its SQLite backend or a tool to fill one isn't installed. */
export async function startPowerDns(directory: string, zones: string, size: number): Promise<Server | null> {
  const [program, convert, sqlite] = ['pdns_server', 'zone2sql', 'sqlite3'].map(findProgram)
  const schema = await readFile('/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql', 'utf8').catch(() => null)
  if (!program || !convert || !sqlite || schema === null) return null
  const cwd = join(directory, 'powerdns')
  await mkdir(cwd)
  const port = await freePort()
  await writeNamedConf(cwd, zones, size)
  const convertArgs = ['--gsqlite', '--transactions', `--named-conf=${join(cwd, 'named.conf')}`]
  const { stdout: inserts } = await execute(convert, convertArgs, { cwd, maxBuffer: 2 ** 30 })
  await writeFile(join(cwd, 'fill.sql'), `PRAGMA synchronous = OFF;\n${schema}\n${inserts}`)
  await execute(sqlite, [join(cwd, 'zones.sqlite'), `.read ${join(cwd, 'fill.sql')}`])
  const backend = `launch=gsqlite3\ngsqlite3-database=${join(cwd, 'zones.sqlite')}`
  return startPdns(program, cwd, port, backend)
}

/** Serves presigned zones from files. Null if it, its backend or a tool isn't installed. */
export async function startPowerDnsSigned(directory: string, zones: string, size: number): Promise<Server | null> {
  const program = findProgram('pdns_server')
  if (!program) return null
  const cwd = join(directory, 'powerdns-signed')
  await mkdir(cwd)
  const [config, store] = [join(cwd, 'named.conf'), join(cwd, 'dnssec.sqlite')]
  await writeNamedConf(cwd, zones, size)
  if (!(await writePresigned(store, size))) return null
  return startPdns(program, cwd, await freePort(), `launch=bind\nbind-config=${config}\nbind-dnssec-db=${store}`)
}

async function writeNamedConf(cwd: string, zones: string, size: number): Promise<void> {
  const named = numbers(size).map((number) => {
    return `zone "${zoneName(number)}" { type master; file "${join(zones, `${zoneName(number)}.zone`)}"; };\n`
  })
  await writeFile(join(cwd, 'named.conf'), named.join(''))
}

/** Its caches hold every answer for the whole run, and it has a receiver on every processor. */
async function startPdns(program: string, cwd: string, port: number, backend: string): Promise<Server> {
  const config = `${backend}
local-address=127.0.0.1
local-port=${port}
socket-dir=${cwd}
daemon=no
guardian=no
loglevel=4
security-poll-suffix=
receiver-threads=${processors}
reuseport=yes
cache-ttl=3600
query-cache-ttl=3600
negquery-cache-ttl=3600
max-packet-cache-entries=1000000
max-cache-entries=1000000
`
  await writeFile(join(cwd, 'pdns.conf'), config)
  return start({ name: 'PowerDNS', program, args: [`--config-dir=${cwd}`], cwd, ports: [port] })
}

function numbers(size: number): number[] {
  return Array.from({ length: size }, (_, i) => i + 1)
}

async function start({ name, program, args, cwd, env, ports }: Command): Promise<Server> {
  const log = openSync(join(cwd, 'output.log'), 'a')
  const startedMs = performance.now()
  const child = spawn(program, args, { cwd, env: env ?? { PATH: process.env.PATH }, stdio: ['ignore', log, log] })
  let running = true
  const exited = new Promise<void>((resolve) => {
    const over = () => {
      running = false
      resolve()
    }
    child.once('exit', over).once('error', over)
  })
  const stop = async () => {
    if (running) child.kill('SIGTERM')
    await exited
  }
  /** The process and its children, one line each. */
  const ofProcesses = async (column: string) => {
    const pid = String(child.pid)
    const { stdout } = await execute('ps', ['-o', `${column}=`, '-p', pid, '--ppid', pid])
    return stdout.trim().split(/\s+/).map(Number)
  }
  for (const port of ports) {
    if (await answersWithin(port, zoneName(1), startTimeoutMs, () => running)) continue
    await stop()
    throw new Error(`${name} did not start:\n${await readFile(join(cwd, 'output.log'), 'utf8')}`)
  }
  return {
    name,
    ports,
    startMs: performance.now() - startedMs,
    residentBytes: async () => (await ofProcesses('rss')).reduce((sum, kilobytes) => sum + kilobytes * 1024, 0),
    cpuMs: async () => {
      const times = (await ofProcesses('pid')).map(cpuMsOf)
      return (await Promise.all(times)).reduce((sum, ms) => sum + ms, 0)
    },
    stop,
  }
}

/** User and system time of a process with all its threads. */
async function cpuMsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * tickMs
}
