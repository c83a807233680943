// The keys of all zones in memory, indexed by the names that messages use.
import type { Logger } from 'pino'
import type { TsigKey } from '../../../dns/packet/tsig.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import type { Database } from '../../../platform/database/database.ts'
import { follow } from '../../../platform/database/mirror.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import type { Snapshots } from '../../../platform/database/snapshots.ts'
import { placeOf, type Vault } from '../../../platform/secrets/secrets.ts'
import { readKeyIds, readKeys, type ServedKey } from '../../../services/dns/index.ts'

export type ZoneKey = TsigKey & Omit<ServedKey, 'secret' | 'keyName'>

export type ZoneKeys = {
  /** `keyName` is the name on the wire, in lower case. */
  find(keyName: string): ZoneKey | null
  /** The keys that may transfer a zone. */
  transfersOf(domainId: string): ZoneKey[]
  close(): Promise<void>
}

export type ZoneKeysOptions = {
  db: Database
  notifications: Notifications
  vault: Vault
  log: Logger
  /** Where the keys are saved, for a start without the database. */
  snapshots?: Snapshots | undefined
}

/** As saved to a file, with octets as text. */
type SavedKey = Omit<ServedKey, 'secret'> & { secret: string }

const idsAtOnce = 20_000

export async function openZoneKeys({ db, notifications, vault, log, snapshots }: ZoneKeysOptions): Promise<ZoneKeys> {
  /** Sealed; each key is opened when it is used. */
  const byId = new Map<string, ServedKey>()
  const idOf = new Map<string, string>()
  /** The ids of transfer keys by domain. */
  const transfers = new Map<string, Set<string>>()
  const saved = snapshots?.open('keys', function* (): Generator<SavedKey> {
    for (const key of byId.values()) yield { ...key, secret: Buffer.from(key.secret).toString('base64') }
  })

  function put(key: ServedKey): void {
    byId.set(key.id, key)
    idOf.set(wireName(key.keyName), key.id)
    if (key.purpose !== 'transfer') return
    const others = transfers.get(key.domainId) ?? new Set()
    transfers.set(key.domainId, others.add(key.id))
  }

  function unseal({ keyName: name, secret, ...rest }: ServedKey): ZoneKey {
    return { ...rest, name, secret: vault.open(secret, placeOf.dnsKey(rest.id)) }
  }

  function drop(id: string): void {
    const key = byId.get(id)
    if (!key) return
    idOf.delete(wireName(key.keyName))
    byId.delete(id)
    const others = transfers.get(key.domainId)
    others?.delete(id)
    if (others?.size === 0) transfers.delete(key.domainId)
  }

  /** A key never changes, so only keys that exist on one side differ. */
  async function compare(): Promise<Set<string>> {
    const differing = new Set(byId.keys())
    for (let after = ''; ; ) {
      const ids = await readKeyIds(db, after, idsAtOnce)
      for (const id of ids) if (!differing.delete(id)) differing.add(id)
      if (ids.length < idsAtOnce) return differing
      after = ids.at(-1)!
    }
  }

  async function read(ids: string[]): Promise<void> {
    const found = await readKeys(db, ids)
    for (const id of ids) drop(id)
    for (const key of found) put(key)
    // A deleted key must not come back after a start without the database.
    saved?.changed(found.length < ids.length)
  }

  const followed = await follow(
    {
      what: 'keys of zones',
      listen: (changed) => notifications.on('dnsKey', changed),
      compare,
      read,
      onCurrent: () => saved?.current(),
      ...(saved && {
        restore: () =>
          saved.restore((rows: SavedKey[]) => {
            for (const row of rows) put({ ...row, secret: Buffer.from(row.secret, 'base64') })
          }),
      }),
    },
    notifications,
    log,
  )

  return {
    find(keyName) {
      const key = byId.get(idOf.get(keyName) ?? '')
      return key ? unseal(key) : null
    },
    transfersOf: (domainId) => [...(transfers.get(domainId) ?? [])].map((id) => unseal(byId.get(id)!)),
    async close() {
      await followed.close()
      await saved?.close()
    },
  }
}
