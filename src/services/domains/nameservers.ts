// The two nameservers of a claim, from the pool: for one name no two accounts, now or ever, get the same two.
import { randomInt } from 'node:crypto'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { hostOf, parentsOf } from '../names/index.ts'
import { adoptPairs, lockHost, lockPairs, readStrays } from './statements.ts'

/** The claims of other accounts, as pairs in the form of `pairText`; empty text for a pair that is not known. */
export type Rivals = {
  /** To the name itself and to names above it. */
  here: readonly string[]
  below: readonly string[]
}

/** A pair as it is remembered: whichever of its names comes first. */
export function pairText(nameservers: readonly string[]): string {
  return [...nameservers].sort().join(' ')
}

/** The nameservers of a domain; those that were attached before there were pairs have the first two of the pool. */
export function nameserversOf(pool: readonly string[], stored: readonly string[]): string[] {
  return stored.length > 0 ? [...stored] : pool.slice(0, 2)
}

const known = new WeakMap<readonly string[], { mixed: string[][]; alike: string[][] }>()

/**
 * All pairs of a pool. Names at even places have the address of the first nameserver, those at odd places that of the
 * second. A mixed pair has one of each, that of the first nameserver first: registries refuse two names of one address.
 */
function pairsOf(pool: readonly string[]): { mixed: string[][]; alike: string[][] } {
  let pairs = known.get(pool)
  if (!pairs) {
    pairs = { mixed: [], alike: [] }
    for (const [place, name] of pool.entries()) {
      for (const [after, other] of pool.slice(place + 1).entries()) {
        if (after % 2 === 1) pairs.alike.push([name, other])
        else pairs.mixed.push(place % 2 === 0 ? [name, other] : [other, name])
      }
    }
    known.set(pool, pairs)
  }
  return pairs
}

function shuffled<T>(all: readonly T[]): T[] {
  return all
    .map((one) => ({ one, at: randomInt(2 ** 32) }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one)
}

/** Whether a delegation to these nameservers can only be meant for this claim. */
export function isExclusive(nameservers: readonly string[], { here }: Pick<Rivals, 'here'>): boolean {
  return !here.includes('') && !here.includes(pairText(nameservers))
}

/** Whether other accounts have, or had, every pair of the pool for a name. */
export function isUsedUp(pool: readonly string[], { here }: Pick<Rivals, 'here'>): boolean {
  const { mixed, alike } = pairsOf(pool)
  return [...mixed, ...alike].every((pair) => here.includes(pairText(pair)))
}

/**
 * The nameservers of a new claim: those that the account had for this name, else its usual ones, else any that nobody
 * else has or had for the name, a name above or, as long as there are such, a name below. If there are none, its usual
 * ones, by which nothing can be proved.
 */
export function choosePair(
  pool: readonly string[],
  { usual, own }: { usual: readonly string[]; own: readonly string[] },
  rivals: Rivals,
): string[] {
  const { mixed, alike } = pairsOf(pool)
  const had = [...mixed, ...alike].filter((pair) => own.includes(pairText(pair)))
  const wanted = [...had, [...usual]]
  const isFree = (pair: string[]) => !rivals.here.includes(pairText(pair))
  const isFreeBelow = (pair: string[]) => isFree(pair) && !rivals.below.includes(pairText(pair))
  const first = wanted.find(isFreeBelow)
  if (first || pool.length === 2) return first ?? wanted[0]!
  const all = [...wanted, ...shuffled(mixed), ...shuffled(alike)]
  return all.find(isFreeBelow) ?? all.find(isFree) ?? wanted[0]!
}

/** The usual pair of an account, given to it by its first claim: one that few other accounts have. */
export async function usualPair(
  db: Db,
  pool: readonly string[],
  { accountId, stored }: { accountId: string; stored: readonly string[] },
): Promise<readonly string[]> {
  const { mixed, alike } = pairsOf(pool)
  const isInPool = (pair: readonly string[]) => pair.length === 2 && pair.every((name) => pool.includes(name))
  if (pool.length === 2) return mixed[0]!
  if (isInPool(stored)) return stored
  return inTransaction(db, async (db) => {
    await lockPairs(db, {})
    const account = await db.account.findUnique({ where: { id: accountId } })
    if (account && isInPool(account.nameservers)) return account.nameservers
    const oldest = await db.domain.findFirst({ where: { accountId }, orderBy: { id: 'asc' } })
    const others = await db.account.findMany({ select: { nameservers: true } })
    const uses = new Map<string, number>()
    for (const { nameservers } of others) {
      const text = pairText(nameservers)
      uses.set(text, (uses.get(text) ?? 0) + 1)
    }
    const count = (pair: string[]) => uses.get(pairText(pair)) ?? 0
    const [rarest] = shuffled(mixed.length > 0 ? mixed : alike).sort((one, other) => count(one) - count(other))
    const chosen = oldest && isInPool(oldest.nameservers) ? oldest.nameservers : rarest!
    await db.account.updateMany({ where: { id: accountId }, data: { nameservers: chosen } })
    return chosen
  })
}

// A statement for all of 100,000 domains would take longer than statements may.
const adoptedAtOnce = 2_000

/**
 * Gives the first two names of the pool to domains that were attached before there were pairs, and others to domains
 * whose nameservers have left the pool, unless these prove them. Runs at every start: a program of the version before
 * may attach domains meanwhile.
 */
export async function adoptNameservers(db: Db, pool: readonly string[]): Promise<void> {
  const nameservers = pool.slice(0, 2)
  const limit = adoptedAtOnce
  while ((await adoptPairs(db, { pair: pairText(nameservers), limit })).length === limit);
  const where = { nameservers: { isEmpty: true } }
  while ((await db.domain.updateMany({ where, data: { nameservers }, limit })).count === limit);
  for (let after = ''; ; ) {
    const strays = await readStrays(db, { pool, after, limit })
    for (const stray of strays) await replacePair(db, pool, stray)
    if (strays.length < limit) return
    after = strays.at(-1)!.id
  }
}

async function replacePair(
  db: Db,
  pool: readonly string[],
  { id, accountId, name }: { id: string; accountId: string; name: string },
): Promise<void> {
  const host = hostOf(name)
  await inTransaction(db, async (db) => {
    // In the order in which a first claim takes the two locks.
    const usual = await usualPair(db, pool, { accountId, stored: [] })
    await lockHost(db, { host })
    const others = { accountId: { not: accountId } }
    const here = await db.domainClaim.findMany({ where: { ...others, name: { in: [host, ...parentsOf(host)] } } })
    const below = await db.domainClaimAbove.findMany({ where: { ...others, above: host } })
    const own = await db.domainClaim.findMany({ where: { accountId, name: host } })
    const pairs = (all: { pair: string }[]) => all.map(({ pair }) => pair)
    const nameservers = choosePair(pool, { usual, own: pairs(own) }, { here: pairs(here), below: pairs(below) })
    // The zone has other nameservers now, so secondaries must hear of it.
    await db.domain.updateMany({ where: { id }, data: { nameservers, serial: { increment: 1 } } })
  })
}
