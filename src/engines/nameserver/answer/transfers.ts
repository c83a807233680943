// The interface between the nameserver and zone transfers.

import type { Query } from '../../../dns/packet/query.ts'
import type { Peer } from './without-zones.ts'

export type TransferRequest = {
  /** The original packet, needed to verify its signature. */
  message: Buffer
  query: Query
  peer: Peer
  tcp: boolean
  /** Aborted when the connection closes: nobody is left to work for. */
  signal?: AbortSignal | undefined
  /** Aborted when the client ends its side of the connection; one that is gone can't be told from one that still reads. */
  leaving?: AbortSignal | undefined
  /** May be called many times; resolves when the channel takes more. */
  send(answer: Buffer): Promise<void>
  /** For answers that forged messages can provoke too: rate-limited. */
  refuse(answer: Buffer): Promise<void>
  /** The ordinary answer, unsigned: for a secondary that asks for the SOA in a signed query. */
  answer(): Promise<Buffer | null>
}

/**
 * Gets NOTIFY messages, every message that ends in a TSIG record, and AXFR and IXFR over TCP; answers them all,
 * refusals too. Without it, these are NOTIMP, answered as if unsigned, and REFUSED. The snapshot's `onChange` tells
 * when to notify, `table.served()` what the catalog holds, and `table.zoneOf` what a zone is made of.
 */
export type Transfers = { handle(request: TransferRequest): Promise<void> }
