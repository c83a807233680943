// The interface between the nameserver and zone transfers.

import type { Query } from '../../../dns/packet/query.ts'
import type { Peer } from './without-zones.ts'

export type TransferRequest = {
  /** The original packet, needed to verify its signature. */
  message: Buffer
  query: Query
  peer: Peer
  tcp: boolean
  /** Aborted when the connection closes, because nobody is waiting any more. */
  signal?: AbortSignal | undefined
  /** Aborted when the client ends its side of the connection. It may be gone, or may still be reading. */
  leaving?: AbortSignal | undefined
  /** May be called many times; resolves when the channel accepts more. */
  send(answer: Buffer): Promise<void>
  /** For answers that forged messages can trigger too: rate-limited. */
  refuse(answer: Buffer): Promise<void>
  /** The ordinary unsigned answer, for a secondary that queries the SOA with a signed message. */
  answer(): Promise<Buffer | null>
}

/**
 * Receives NOTIFY messages, every message that ends in a TSIG record, and AXFR and IXFR over TCP. Answers all of them,
 * including refusals. Without it, they are answered with NOTIMP, as if unsigned, and with REFUSED. The snapshot's `onChange`
 * says when to notify, `table.served()` returns the catalog's content, and `table.zoneOf` that of a zone.
 */
export type Transfers = { handle(request: TransferRequest): Promise<void> }
