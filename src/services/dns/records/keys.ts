// TSIG keys of zones (RFC 8945). Only the response that creates a key contains its secret, which is sealed at rest.
import { randomBytes } from 'node:crypto'
import { isIP, isIPv6 } from 'node:net'
import type { Static } from '@sinclair/typebox'
import { listenAddress } from '../../../dns/listen-address.ts'
import type { DnsKey } from '../../../generated/client.ts'
import { type Db, inTransaction, violation } from '../../../platform/database/database.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../../platform/database/page.ts'
import { viewOf } from '../../../platform/database/views.ts'
import { Fault, type FieldError } from '../../../platform/errors.ts'
import { badField, refuseFields, type Sound } from '../../../platform/fields.ts'
import { isPublicAddress } from '../../../platform/http/public-address.ts'
import { newId } from '../../../platform/ids.ts'
import { placeOf, type Vault } from '../../../platform/secrets/secrets.ts'
import { type CreateDnsKey, DnsKey as DnsKeySchema, type DnsKeyWithSecret } from '../../../schemas/dns-keys.ts'
import { append, eventOf } from '../../events/index.ts'
import type { Actor } from '../../identity/index.ts'
import { orNull, readPatterns, readTypes } from '../../tokens/index.ts'
import { findZone, type Zone } from './dns-records.ts'
import { requireWholeZone } from './within-parts.ts'

export type DnsKeyView = Static<typeof DnsKeySchema>
type Input = Static<typeof CreateDnsKey>

const secretOctets = 32

/** The name of a key in DNS messages, unique on the platform. */
export function keyNameOf({ id, name }: Pick<DnsKey, 'id' | 'name'>): string {
  return `${name}.${id.slice(id.indexOf('_') + 1)}`
}

const viewRow = viewOf(DnsKeySchema)

function viewKey(zone: string, row: DnsKey): DnsKeyView {
  return viewRow(row, {
    domain: zone,
    names: orNull(row.names),
    types: orNull(row.types) as DnsKeyView['types'],
    keyName: keyNameOf(row),
    algorithm: 'hmac-sha256',
  })
}

/** The version for preconditions. Using a key does not change it. */
export function keyVersion({ lastUsedAt: _use, ...version }: DnsKeyView): unknown {
  return version
}

/** Finds the zone if the actor has all of it: a key can cover the whole zone and outlives the token that created it. */
async function findOwnZone(db: Db, actor: Actor, path: string): Promise<Zone> {
  const zone = await findZone(db, actor, path)
  requireWholeZone(actor, zone.id)
  return zone
}

async function findRow(db: Db, zone: Zone, id: string): Promise<DnsKey> {
  const row = await db.dnsKey.findFirst({ where: { id, domainId: zone.id } })
  if (!row) throw new Fault('not_found', `There is no key ${id} in ${zone.name}.`)
  return row
}

export async function findKey(db: Db, actor: Actor, path: string, id: string): Promise<DnsKeyView> {
  const zone = await findOwnZone(db, actor, path)
  return viewKey(zone.name, await findRow(db, zone, id))
}

export async function listKeys(db: Db, actor: Actor, path: string, page: PageRequest): Promise<PageOf<DnsKeyView>> {
  const zone = await findOwnZone(db, actor, path)
  const { where, ...rest } = byId(page, 'key')
  const found = await db.dnsKey.findMany({ where: { ...where, domainId: zone.id }, ...rest })
  return pageOf(
    found,
    page,
    (row) => viewKey(zone.name, row),
    (row) => [row.id],
  )
}

/** Parses addresses of secondaries with ports. Private addresses are allowed only outside production. */
function readNotify(notify: readonly (string | undefined)[], allowPrivate: boolean) {
  const errors: FieldError[] = []
  const addresses = notify.flatMap((text, index) => {
    if (text === undefined) return []
    const { host, port } = listenAddress(text)
    const detail = 'must be an IP address with an optional port: 192.0.2.53, 192.0.2.53:5353, [2001:db8::53]:53'
    if (isIP(host) === 0 || !(port > 0 && port < 65_536))
      errors.push(badField(`#/notify/${index}`, 'bad_format', detail))
    else if (!allowPrivate && !isPublicAddress(host)) {
      errors.push(badField(`#/notify/${index}`, 'not_allowed', 'must be a public address'))
    }
    return [isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`]
  })
  return { addresses: [...new Set(addresses)], errors }
}

type ParsedInput = { names: string[]; types: string[]; notify: string[]; errors: FieldError[] }

function readInput(zone: Zone, { purpose, names, types, notify }: Sound<Input>, allowPrivate: boolean): ParsedInput {
  const { addresses, errors } = readNotify(notify ?? [], allowPrivate)
  const patterns = readPatterns(names, zone.name, '#/names')
  const typeList = readTypes(types, '#/types')
  const allErrors = [...patterns.errors, ...typeList.errors, ...errors]
  const read = { names: patterns.names, types: typeList.types, notify: addresses, errors: allErrors }
  if (purpose !== 'transfer') {
    if (notify) {
      read.errors.push(badField('#/notify', 'not_allowed', 'only keys with purpose transfer can notify secondaries'))
    }
    return read
  }
  const limits = Object.entries({ names, types }).filter(([, value]) => value)
  for (const [field] of limits) {
    read.errors.push(badField(`#/${field}`, 'not_allowed', 'a transfer always covers the whole zone'))
  }
  return read
}

/** Throws the errors of a new key without creating it. */
export async function checkKey(
  db: Db,
  actor: Actor,
  path: string,
  { input, allowPrivate }: { input: Sound<Input>; allowPrivate: boolean },
): Promise<void> {
  refuseFields(readInput(await findOwnZone(db, actor, path), input, allowPrivate).errors)
}

export async function createKey(
  db: Db,
  actor: Actor,
  path: string,
  { input, vault, allowPrivate }: { input: Input; vault: Vault; allowPrivate: boolean },
): Promise<Static<typeof DnsKeyWithSecret>> {
  return inTransaction(db, async (db) => {
    const zone = await findOwnZone(db, actor, path)
    const { names, types, notify, errors } = readInput(zone, input, allowPrivate)
    refuseFields(errors)
    const id = newId('key')
    const secret = randomBytes(secretOctets)
    const { name, purpose = 'update' } = input
    const data = {
      id,
      accountId: actor.accountId,
      domainId: zone.id,
      name,
      purpose,
      names,
      types,
      notify,
      secret: Uint8Array.from(vault.seal(secret, placeOf.dnsKey(id))),
      createdAt: new Date(),
    }
    const row = await db.dnsKey.create({ data }).catch((error) => {
      if (violation(error)?.kind !== 'unique') throw error
      throw new Fault('key_exists', `${zone.name} already has a key named ${name}.`)
    })
    const view = viewKey(zone.name, row)
    await appendKeyEvent(db, actor, zone, { type: 'dns.key.created', view })
    return { ...view, secret: secret.toString('base64') }
  })
}

export async function deleteKey(
  db: Db,
  actor: Actor,
  { domain, id }: { domain: string; id: string },
  precondition: (version: unknown) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const zone = await findOwnZone(db, actor, domain)
    const view = viewKey(zone.name, await findRow(db, zone, id))
    precondition(keyVersion(view))
    const { count } = await db.dnsKey.deleteMany({ where: { id } })
    if (count === 0) throw new Fault('not_found', `There is no key ${id} in ${zone.name}.`)
    // A secondary that another key names too is checked again.
    await db.secondaryCheck.deleteMany({ where: { domainId: zone.id, secondary: { in: view.notify } } })
    await appendKeyEvent(db, actor, zone, { type: 'dns.key.deleted', view })
  })
}

type KeyEvent = { type: 'dns.key.created' | 'dns.key.deleted'; view: DnsKeyView }

async function appendKeyEvent(db: Db, actor: Actor, { projectId }: Zone, { type, view }: KeyEvent): Promise<void> {
  await append(db, [eventOf(actor, type, { subject: view.id, projectId, data: view })])
}

/** A key as nameservers load it, with its sealed secret. */
export type ServedKey = {
  id: string
  keyName: string
  secret: Uint8Array
  purpose: DnsKeyView['purpose']
  zone: string
  domainId: string
  accountId: string
  /** Addresses and ports of the secondaries to notify of changes. */
  notify: string[]
}

/** The next ids of keys after the given one, in order. */
export async function readKeyIds(db: Db, after: string, limit: number): Promise<string[]> {
  const found = await db.dnsKey.findMany({
    where: { id: { gt: after } },
    select: { id: true },
    orderBy: { id: 'asc' },
    take: limit,
  })
  return found.map(({ id }) => id)
}

/** Reads keys by id; missing ones were deleted. */
export async function readKeys(db: Db, ids: string[]): Promise<ServedKey[]> {
  const found = await db.dnsKey.findMany({
    where: { id: { in: ids } },
    include: { domain: { select: { name: true } } },
  })
  return found.map((row) => ({
    id: row.id,
    keyName: keyNameOf(row),
    secret: row.secret,
    purpose: row.purpose as ServedKey['purpose'],
    zone: row.domain.name,
    domainId: row.domainId,
    accountId: row.accountId,
    notify: row.notify,
  }))
}

/** Records that a key was used now. */
export async function recordKeyUse(db: Db, id: string): Promise<void> {
  await db.dnsKey.updateMany({ where: { id }, data: { lastUsedAt: new Date() } })
}
