// Chooses a busy server on demand to stop for another account's, so that no account can occupy all places.

export type Placed<T> = { owner: string | undefined; server: T }

/** Returns a server of the account with the most, if it has more than the candidate would; else undefined. */
export function chooseEviction<T>(placed: readonly Placed<T>[], candidate: string | undefined): T | undefined {
  const own = placed.filter(({ owner }) => owner === candidate).length
  const accounts = [...Map.groupBy(placed, ({ owner }) => owner).values()]
  const [most = []] = accounts.sort((a, b) => b.length - a.length)
  return most.length > own + 1 ? most[0]!.server : undefined
}
