// Responses and WebSockets that last, by host: they are ended when their host is taken down or its account suspended.

export type UnderWay = {
  /** Returns a function to call when it is over. */
  begin(host: string, end: () => void): () => void
  /** Ends those whose host is barred. */
  endIf(isBarred: (host: string) => boolean): void
}

export function createUnderWay(): UnderWay {
  const open = new Set<{ host: string; end: () => void }>()
  return {
    begin(host, end) {
      const exchange = { host, end }
      open.add(exchange)
      return () => void open.delete(exchange)
    },
    endIf(isBarred) {
      for (const exchange of [...open]) {
        if (!isBarred(exchange.host)) continue
        open.delete(exchange)
        exchange.end()
      }
    },
  }
}
