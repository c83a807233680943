// An API and its nameservers with transfers, and the programs of others that talk to them.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pino } from 'pino'
import { createAliasHandler } from '../../../../src/engines/nameserver/load/alias.ts'
import { createNameserver, type Nameserver } from '../../../../src/engines/nameserver/server.ts'
import { createLagStore } from '../../../../src/engines/nameserver/transfer/lag-store.ts'
import {
  createTransfers,
  type RunningTransfers,
  type TransfersOptions,
} from '../../../../src/engines/nameserver/transfer/transfers.ts'
import type { OutsideAddresses } from '../../../../src/engines/nameserver/zones/lookup.ts'
import { edgeAddresses } from '../../../../src/engines/nameserver/zones/outside.ts'
import { startApi, type TestApi } from '../../../helpers/api.ts'
import { until } from '../../../helpers/until.ts'

export const secret = Buffer.alloc(32, 'berth').toString('base64')
export const keyName = 'transfer.berth.test'
export const keyArgument = `hmac-sha256:${keyName}:${secret}`

// Only the PATH: a test on a machine without peers hides them from it.
const places = (process.env.PATH ?? '').split(delimiter)

/** True if a test must be left out; with BERTH_REQUIRE_PEERS=1 none is. */
export function isMissing(...programs: string[]): boolean {
  if (process.env.BERTH_REQUIRE_PEERS === '1') return false
  return programs.some((program) => !places.some((place) => existsSync(join(place, program))))
}

export function run(program: string, args: string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: 30_000, maxBuffer: 1 << 28 }, (_error, stdout, stderr) =>
      resolve(stdout + stderr),
    )
  })
}

export type World = {
  api: TestApi
  nameserver: Nameserver
  transfers: RunningTransfers
  port: number
  logged: string[]
  /** Addresses that names elsewhere have. */
  elsewhere: Map<string, string>
  addDomain(name: string): Promise<void>
  addRecord(zone: string, type: string, name: string, value: string): Promise<string>
  /** Looks the targets of ALIAS records up, as the job does. */
  lookUp(zone: string): Promise<void>
  /** Waits until the nameserver has this zone at the serial of the database. */
  settled(zone: string): Promise<number>
  dig(...args: string[]): Promise<string>
  kdig(...args: string[]): Promise<string>
  stop(): Promise<void>
}

/** Without the patience of production. */
export const impatient = { delaysMs: { first: 20, min: 100, max: 200 }, retryDelaysMs: [20, 40] }

export async function startWorld(
  secondaries: string[] = [],
  watching: TransfersOptions['watching'] = undefined,
): Promise<World> {
  const api = await startApi({
    NAMESERVER_LISTEN: '127.0.0.1:0',
    NAMESERVER_SECONDARIES: secondaries.join(','),
    NAMESERVER_TSIG: `${keyName}:${secret}`,
  })
  const { config, db } = api
  const logged: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) })
  const elsewhere = new Map<string, string>()
  const outside: OutsideAddresses = { edge: edgeAddresses(config) }
  const { alias } = createAliasHandler({
    config,
    db,
    log,
    async resolveAlias(name, type) {
      const address = elsewhere.get(name)
      if (address === undefined) throw new Error('nobody knows it')
      return type === 'A' ? [{ address, ttl: 60 }] : []
    },
  })
  let transfers: RunningTransfers | null = null
  const nameserver = createNameserver({
    config,
    db,
    notifications: api.deps.notifications,
    log,
    vault: api.deps.vault,
    transfers(snapshot, _outside, keys) {
      const { nameserverSecondaries, nameserverTsig } = config
      transfers = createTransfers({
        snapshot,
        outside,
        key: nameserverTsig,
        keys,
        secondaries: nameserverSecondaries,
        log,
        lags: createLagStore(db, snapshot.table),
        ...(watching && { watching }),
      })
      return transfers
    },
  })
  const [{ port } = { port: 0 }] = await nameserver.listen()
  await api.newProject('site')
  return {
    api,
    nameserver,
    transfers: transfers!,
    port,
    logged,
    elsewhere,
    async addDomain(name) {
      const made = await api.call('POST', '/domains', { body: { project: 'site', name } })
      if (made.status !== 201) throw new Error(made.text)
    },
    async addRecord(zone, type, name, value) {
      const made = await api.call('POST', `/dns/${zone}/records`, { body: { type, name, value, ttl: 300 } })
      if (made.status !== 201) throw new Error(made.text)
      return made.body.id
    },
    async lookUp(zone) {
      const { id: domainId } = await db.domain.findFirstOrThrow({ where: { name: zone } })
      await alias.run({ domainId }, { attempt: 1, signal: new AbortController().signal, async requireHeld() {} })
    },
    async settled(zone) {
      const { serial } = await db.domain.findFirstOrThrow({ where: { name: zone } })
      await until(() => nameserver.snapshot!.table.get(zone)?.serial === serial)
      return serial
    },
    dig: (...args) => run('dig', ['@127.0.0.1', '-p', String(port), '+tries=1', '+time=3', ...args]),
    kdig: (...args) => run('kdig', ['@127.0.0.1', '-p', String(port), '+retry=0', '+time=3', ...args]),
    async stop() {
      await nameserver.close()
      await api.stop()
    },
  }
}

export type Peer = {
  directory: string
  output(): string
  signal(name: NodeJS.Signals): void
  stop(): Promise<void>
}

/** A server in a directory of its own, which is written from `files`; ended by its own process id. */
export async function startPeer(
  program: string,
  args: (directory: string) => string[],
  files: (directory: string) => Record<string, string>,
): Promise<Peer> {
  const directory = await mkdtemp(join(tmpdir(), `berth-${program}-`))
  for (const [name, text] of Object.entries(files(directory))) await writeFile(join(directory, name), text)
  let output = ''
  const child: ChildProcess = spawn(program, args(directory), {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      output += chunk
    })
  }
  return {
    directory,
    output: () => output,
    signal: (name) => void child.kill(name),
    async stop() {
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), 3_000)
      await ended
      clearTimeout(late)
      await rm(directory, { recursive: true, force: true })
    },
  }
}
