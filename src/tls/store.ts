// The certificates in service: kept in sync with the database, and turned into TLS contexts on demand.
import { createSecureContext, type SecureContext } from 'node:tls'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Database } from '../platform/database/database.ts'
import { follow } from '../platform/database/mirror.ts'
import type { Notifications } from '../platform/database/notifications.ts'
import { placeOf, type Vault } from '../platform/secrets/secrets.ts'
import type { Snapshots } from '../platform/database/snapshots.ts'
import { type ServedCertificateRow, readDomainCertificateStates, readPlatformCertificateStates, readServedCertificates } from '../services/certificates/index.ts'
import { tlsPolicy } from './policy.ts'
import { CertificateTable, covers, type Served } from './table.ts'

export type CertificateStoreOptions = {
  db: Database
  notifications: Notifications
  vault: Vault
  log: Logger
  /** Only the platform's own certificates, which suffice for the API. */
  platformOnly?: boolean
  /** How many TLS contexts are cached. */
  maxContexts?: number
  /** Hosts of the platform itself, which never get the certificate of a domain. */
  ownHosts?: ReadonlySet<string>
  /** Where certificates are stored for a start without the database; all of them, so not with `platformOnly`. */
  snapshots?: Snapshots | undefined
}

/** In JSON form: the private key, encrypted as in the database, in base64. */
type KeptRow = Omit<ServedCertificateRow, 'key' | 'notAfter'> & { key: string; notAfter: string }

export type Pem = { id: string; cert: Buffer; key: Buffer }

/** All names are in lower case, without port or trailing dot. */
export type CertificateStore = {
  /** Null if there is no certificate for the host: the client is refused, never shown another host's. */
  contextOf(host: string): SecureContext | null
  /** Whether the host has a certificate that has not expired. */
  isInService(host: string): boolean
  /** The certificate of the host in PEM; its id changes when it is replaced. */
  pemOf(host: string): Pem | null
  /** Whether the certificate that a client got for `shown` is valid for `host` too. */
  covers(shown: string, host: string): boolean
  /** Called after certificates were added, removed or replaced. */
  onChange(listener: () => void): () => void
  readonly size: number
  close(): Promise<void>
}

// A context takes about 20 KB and a millisecond to create.
const defaultMaxContexts = 1_000
const statesAtOnce = 20_000

export async function createCertificateStore(options: CertificateStoreOptions): Promise<CertificateStore> {
  const { db, notifications, vault, log, platformOnly = false, maxContexts = defaultMaxContexts } = options
  const table = new CertificateTable(options.ownHosts)
  const contexts = new LRUCache<string, SecureContext>({
    max: maxContexts,
    // The garbage collector doesn't see their 20 KB: without this, a sweep over 20,000 names took 250 MB. Connections
    // keep what they need of a closed context.
    dispose: ({ context }) => context?.close?.(),
  })
  const listeners = new Set<() => void>()
  const snapshots = platformOnly ? undefined : options.snapshots
  const kept = snapshots?.open('certificates', function* () {
    for (const row of table.rows()) yield { ...row, key: Buffer.from(row.key).toString('base64') }
  })

  async function compare(): Promise<Set<string>> {
    const states = await readPlatformCertificateStates(db)
    for (let after = ''; !platformOnly; ) {
      const page = await readDomainCertificateStates(db, after, statesAtOnce)
      for (const state of page) states.push(state)
      if (page.length < statesAtOnce) break
      after = page.at(-1)!.name
    }
    return table.differing(states)
  }

  async function read(names: string[]): Promise<void> {
    const rows = await readServedCertificates(db, names)
    table.apply(names, platformOnly ? rows.filter(({ platform }) => platform) : rows)
    for (const listener of listeners) listener()
    kept?.changed()
  }

  function restore(rows: KeptRow[]): void {
    const usable = rows.flatMap((row) => {
      const key = Buffer.from(row.key, 'base64')
      // If left out, it is read from the database, where it may have been encrypted again under the same id.
      return isOpenable(vault, row.id, key) ? [{ ...row, key, notAfter: new Date(row.notAfter) }] : []
    })
    if (usable.length < rows.length) {
      log.warn(
        { certificates: rows.length - usable.length },
        'private keys of the snapshot are sealed with another key',
      )
    }
    table.apply(
      usable.map(({ name }) => name),
      usable,
    )
  }

  const following = await follow(
    {
      listen: (changed) => notifications.on('certificate', changed),
      what: 'certificates',
      compare,
      read,
      ...(kept && { restore: () => kept.restore(restore), onCurrent: () => kept.current() }),
    },
    notifications,
    log,
  )

  const keyOf = ({ id, sealedKey }: Served) => vault.open(sealedKey, placeOf.certificate(id))

  function make(entry: Served): SecureContext | null {
    if (entry.usable === false) return null
    try {
      const context = createSecureContext({ cert: entry.chain, key: keyOf(entry), ...tlsPolicy })
      contexts.set(entry.id, context)
      entry.usable = true
      return context
    } catch (err) {
      // An unusable certificate affects only its own hosts, and is logged once.
      entry.usable = false
      log.error({ err, certificateId: entry.id, names: entry.names }, 'a certificate cannot be used')
      return null
    }
  }

  return {
    contextOf(host) {
      const entry = table.find(host)
      return entry ? (contexts.get(entry.id) ?? make(entry)) : null
    },
    isInService(host) {
      const entry = table.find(host)
      if (!entry || entry.notAfterMs < Date.now()) return false
      return entry.usable ?? make(entry) !== null
    },
    pemOf(host) {
      const entry = table.find(host)
      return entry ? { id: entry.id, cert: entry.chain, key: keyOf(entry) } : null
    },
    covers(shown, host) {
      const entry = table.find(shown)
      return entry !== undefined && covers(entry, host)
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    get size() {
      return table.size
    },
    async close() {
      await following.close()
      await kept?.close()
    },
  }
}

function isOpenable(vault: Vault, id: string, sealed: Buffer): boolean {
  try {
    vault.open(sealed, placeOf.certificate(id))
    return true
  } catch {
    return false
  }
}
