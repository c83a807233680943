// Completes versions of zones with their signatures: stored ones, and new ones for what was never signed. Each set is
// signed once: if several nameservers sign it, all of them serve the signature that was stored first.
import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { canonicalSet, fingerprintOf, rrsigHead, type SignedSet } from '../../../dns/dnssec/canonical.ts'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import type { Database } from '../../../platform/database/database.ts'
import { placeOf, type Vault } from '../../../platform/secrets/secrets.ts'
import { addSignatures, readPrivateKeys, readSignatures, type ServedSigning } from '../../../services/dns/index.ts'
import type { OwnedSet } from '../zones/lookup.ts'
import { signatureKey } from '../zones/signing.ts'
import { signedSetOf } from './sets.ts'

export type SignerOptions = {
  db: Database
  /** Opens the keys; without it, only what others have signed is served. */
  vault: Vault | null
  /** Unix time in seconds. */
  now?: () => number
}

type Key = ServedSigning['keys'][number]

/** A set, and the key that should sign it. */
export type NeededSignature = {
  /** The key in the zone's store. */
  readonly key: string
  readonly signer: Key
  readonly origin: string
  readonly serial: number
  readonly set: SignedSet
  readonly canonical: Buffer
  readonly fingerprint: string
  /** Null until it is found or created. */
  octets: string | null
}

const dayS = 86_400
const validS = 14 * dayS
// Clocks elsewhere may be behind.
const setBackS = 3_600
const batchSize = 2_000
const maxKeys = 1_000

/** The signatures that one version of a zone needs. */
export function* neededSignatures(
  { name, serial }: { name: string; serial: number },
  keys: readonly Key[],
  sets: Iterable<OwnedSet>,
): Generator<NeededSignature> {
  const origin = wireName(name)
  const signers = keys.filter((key) => key.signing)
  for (const owned of sets) {
    const set = signedSetOf(owned)
    const canonical = canonicalSet(set)
    const fingerprint = fingerprintOf(canonical)
    for (const [index, signer] of signers.entries()) {
      const key = signatureKey(index, fingerprint)
      yield { key, signer, origin, serial, set, canonical, fingerprint, octets: null }
    }
  }
}

/**
 * When to renew a signature: after about a week, at a different time for each set. That of an SOA is checked after a day,
 * because the next change makes it unused.
 */
function renewalOf({ inception }: { inception: number }, { fingerprint, set }: NeededSignature): Date {
  const part = ((fingerprint.charCodeAt(0) << 8) | fingerprint.charCodeAt(1)) / 0x10000
  const days = set.type === typeNumbers.SOA ? 2 : 7
  return new Date((inception + setBackS + (days - part) * dayS) * 1000)
}

/** Whether a signature is old enough to be renewed. */
export function isOld(octets: string, nowS: number): boolean {
  return Buffer.from(octets, 'latin1').readUInt32BE(4) - nowS < validS - 6 * dayS
}

export type Signer = ReturnType<typeof createSigner>

export function createSigner({ db, vault, now = () => Math.floor(Date.now() / 1000) }: SignerOptions) {
  const opened = new LRUCache<string, KeyObject>({ max: maxKeys })

  async function openKeys(ids: Iterable<string>): Promise<void> {
    const missing = [...new Set(ids)].filter((id) => !opened.has(id))
    if (missing.length === 0) return
    if (!vault) throw new Error('a zone has to be signed, and there is no key to open its own with')
    for (const [id, sealed] of await readPrivateKeys(db, missing)) {
      const key = vault.open(sealed, placeOf.zoneKey(id))
      opened.set(id, createPrivateKey({ key, format: 'der', type: 'pkcs8' }))
    }
  }

  /** Runs in libuv's threads. */
  function signatureOf(key: KeyObject, octets: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) =>
      sign('sha256', octets, { key, dsaEncoding: 'ieee-p1363' }, (error, made) =>
        error ? reject(error) : resolve(made),
      ),
    )
  }

  /** Inception, expiry and signature as stored, and when to renew them; null if the key is gone. */
  async function make(needed: NeededSignature) {
    const { signer, origin, set, canonical, fingerprint } = needed
    const key = opened.get(signer.id)
    if (!key) return null
    const inception = now() - setBackS
    const validity = { inception, expiry: inception + setBackS + validS }
    const head = rrsigHead(set, validity, { tag: signer.tag, signer: origin })
    const times = Buffer.alloc(8)
    times.writeUInt32BE(validity.inception, 0)
    times.writeUInt32BE(validity.expiry, 4)
    const octets = Buffer.concat([times, await signatureOf(key, Buffer.concat([head, canonical]))]).toString('latin1')
    return {
      keyId: signer.id,
      fingerprint,
      name: set.owner,
      type: set.type,
      octets,
      renewAt: renewalOf(validity, needed),
    }
  }

  async function load(needed: readonly NeededSignature[]): Promise<void> {
    for (let at = 0; at < needed.length; at += batchSize) {
      const part = needed.slice(at, at + batchSize)
      const asked = part.map(({ signer, fingerprint, serial }) => ({ keyId: signer.id, fingerprint, serial }))
      const found = await readSignatures(db, asked)
      for (const [index, one] of part.entries()) one.octets = found[index]!
    }
  }

  const missingOf = (needed: readonly NeededSignature[]) => needed.filter(({ octets }) => octets === null)

  function assign(
    needed: readonly NeededSignature[],
    made: readonly { keyId: string; fingerprint: string; octets: string }[],
  ) {
    const found = new Map(made.map(({ keyId, fingerprint, octets }) => [keyId + fingerprint, octets]))
    for (const one of needed) one.octets = found.get(one.signer.id + one.fingerprint) ?? null
  }

  /** Creates the missing signatures, stores them, and uses whatever is stored then. */
  async function complete(needed: readonly NeededSignature[]): Promise<void> {
    const missing = missingOf(needed)
    for (let at = 0; at < missing.length; at += batchSize) {
      const part = missing.slice(at, at + batchSize)
      const made = await signAll(part)
      const added = await addSignatures(db, made)
      if (added === part.length) assign(part, made)
      else await load(part)
      await nextTurn()
    }
  }

  async function signAll(needed: readonly NeededSignature[]) {
    await openKeys(needed.map(({ signer }) => signer.id))
    const made: NonNullable<Awaited<ReturnType<typeof make>>>[] = []
    // Two at once: there are few threads, and other work needs them too.
    const left = needed[Symbol.iterator]()
    const run = async () => {
      for (const one of left) {
        const signature = await make(one)
        if (signature) made.push(signature)
      }
    }
    await Promise.all([run(), run()])
    return made
  }

  return { signs: vault !== null, load, complete, missingOf, signAll }
}
