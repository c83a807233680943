// The seam of zone transfers: what the nameserver hands over, and what it hands over with it.
import type { Peer } from './front.ts'
import type { Query } from './wire.ts'

export type TransferRequest = {
  /** The packet as it came, which a signature is checked against. */
  message: Buffer
  query: Query
  peer: Peer
  tcp: boolean
  /** May be called many times; resolves when the channel takes more. */
  send(answer: Buffer): Promise<void>
  /** For what anyone can provoke, by forged messages too: sent only so often. */
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
