// Chooses the two nameservers of a claim from the pool: for the same name, no two accounts ever get the same pair.
import { randomInt } from 'node:crypto'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { hostOf, parentsOf } from '../names/index.ts'
import { adoptPairs, lockHost, lockPairs, readStrays } from './statements.ts'

/** The claims of other accounts, as pairs in the form of `pairText`; an empty string is an unknown pair. */
export type Rivals = {
  /** Claims to the name itself and to its parents. */
  here: readonly string[]
  below: readonly string[]
}

/** The stored form of a pair, regardless of its order. */
export function pairText(nameservers: readonly string[]): string {
  return [...nameservers].sort().join(' ')
}

/** The nameservers of a domain; domains from before pairs existed have the first two of the pool. */
export function nameserversOf(pool: readonly string[], stored: readonly string[]): string[] {
  return stored.length > 0 ? [...stored] : pool.slice(0, 2)
}

const pairsByPool = new WeakMap<readonly string[], { mixed: string[][]; alike: string[][] }>()

/**
 * All pairs of a pool. Names at even indexes have the address of the first nameserver, those at odd indexes that of the
 * second. A mixed pair has one of each, since registries refuse two names with one address.
 */
function pairsOf(pool: readonly string[]): { mixed: string[][]; alike: string[][] } {
  let pairs = pairsByPool.get(pool)
  if (!pairs) {
    pairs = { mixed: [], alike: [] }
    for (const [place, name] of pool.entries()) {
      for (const [after, other] of pool.slice(place + 1).entries()) {
        if (after % 2 === 1) pairs.alike.push([name, other])
        else pairs.mixed.push(place % 2 === 0 ? [name, other] : [other, name])
      }
    }
    pairsByPool.set(pool, pairs)
  }
  return pairs
}

function shuffled<T>(all: readonly T[]): T[] {
  return all
    .map((one) => ({ one, at: randomInt(2 ** 32) }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one)
}

/** Whether a delegation to these nameservers can only mean this claim. */
export function isExclusive(nameservers: readonly string[], { here }: Pick<Rivals, 'here'>): boolean {
  return !here.includes('') && !here.includes(pairText(nameservers))
}

/** Whether other accounts have, or had, every pair of the pool for a name. */
export function isUsedUp(pool: readonly string[], { here }: Pick<Rivals, 'here'>): boolean {
  const { mixed, alike } = pairsOf(pool)
  return [...mixed, ...alike].every((pair) => here.includes(pairText(pair)))
}

/**
 * The nameservers of a new claim: the account's earlier ones for this name, its usual ones, or any pair that no other
 * account has or had for the name, its parents or, if possible, names below. If there is none, the usual ones, which
 * then prove nothing.
 */
export function choosePair(
  pool: readonly string[],
  { usual, own }: { usual: readonly string[]; own: readonly string[] },
  rivals: Rivals,
): string[] {
  const { mixed, alike } = pairsOf(pool)
  const earlier = [...mixed, ...alike].filter((pair) => own.includes(pairText(pair)))
  const preferred = [...earlier, [...usual]]
  const isFree = (pair: string[]) => !rivals.here.includes(pairText(pair))
  const isFreeBelow = (pair: string[]) => isFree(pair) && !rivals.below.includes(pairText(pair))
  const first = preferred.find(isFreeBelow)
  if (first || pool.length === 2) return first ?? preferred[0]!
  const all = [...preferred, ...shuffled(mixed), ...shuffled(alike)]
  return all.find(isFreeBelow) ?? all.find(isFree) ?? preferred[0]!
}

/** The usual pair of an account, which its first claim assigns: one that few other accounts have. */
export async function defaultPair(
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

// One statement for 100,000 domains would exceed the statement timeout.
const batchSize = 2_000

/**
 * Assigns the first two names of the pool to domains from before pairs existed, and new pairs to domains whose
 * nameservers have left the pool, unless these prove them. Runs at every start, because an older version may still
 * attach domains during an upgrade.
 */
export async function adoptNameservers(db: Db, pool: readonly string[]): Promise<void> {
  const nameservers = pool.slice(0, 2)
  const limit = batchSize
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
    // Lock order everywhere: pairs, host.
    const usual = await defaultPair(db, pool, { accountId, stored: [] })
    await lockHost(db, { host })
    const others = { accountId: { not: accountId } }
    const here = await db.domainClaim.findMany({ where: { ...others, name: { in: [host, ...parentsOf(host)] } } })
    const below = await db.domainClaimAbove.findMany({ where: { ...others, above: host } })
    const own = await db.domainClaim.findMany({ where: { accountId, name: host } })
    const pairs = (all: { pair: string }[]) => all.map(({ pair }) => pair)
    const nameservers = choosePair(pool, { usual, own: pairs(own) }, { here: pairs(here), below: pairs(below) })
    // The zone has new nameservers, so secondaries must transfer it.
    await db.domain.updateMany({ where: { id }, data: { nameservers, serial: { increment: 1 } } })
  })
}
