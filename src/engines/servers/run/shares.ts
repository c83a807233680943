// Which server on demand leaves for another one where all of them are in use: nobody holds every place.

export type Placed<T> = { owner: string | undefined; server: T }

/** One of the account that has the most, if that is more than the one who asks would have; else undefined. */
export function toLeave<T>(placed: readonly Placed<T>[], asks: string | undefined): T | undefined {
  const own = placed.filter(({ owner }) => owner === asks).length
  const accounts = [...Map.groupBy(placed, ({ owner }) => owner).values()]
  const [most = []] = accounts.sort((a, b) => b.length - a.length)
  return most.length > own + 1 ? most[0]!.server : undefined
}
