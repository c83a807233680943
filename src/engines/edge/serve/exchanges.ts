// Tracks open responses and WebSockets by host, to end them when their host is barred.

export type Exchanges = {
  /** Returns a function to call when the exchange is over. */
  add(host: string, end: () => void): () => void
  endBarred(isBarred: (host: string) => boolean): void
}

export function createExchanges(): Exchanges {
  const open = new Set<{ host: string; end: () => void }>()
  return {
    add(host, end) {
      const exchange = { host, end }
      open.add(exchange)
      return () => void open.delete(exchange)
    },
    endBarred(isBarred) {
      for (const exchange of [...open]) {
        if (!isBarred(exchange.host)) continue
        open.delete(exchange)
        exchange.end()
      }
    },
  }
}
