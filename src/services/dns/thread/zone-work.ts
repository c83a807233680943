// Imports and exports of zones: small ones at once on the event loop, large ones in the thread, within bounded memory.
import type { Logger } from 'pino'
import { type Database, onConnection } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import type { Actor } from '../../identity/index.ts'
import { type BatchRequest, type PlannedBatch, refuseOversized, sizeOf } from '../records/batches.ts'
import { openZone } from '../records/dns-records.ts'
import { importInProgress, octetsOf, textOf } from '../zones/zone-files.ts'
import { importRecords, type Replacement } from '../zones/zone-imports.ts'
import { type ExportOptions, exportText, zoneFileLimitBytes } from '../zones/zones.ts'
import type { ZoneFileResult, ZoneImportResult } from './messages.ts'
import { createZoneThread } from './zone-thread.ts'

// What takes the event loop some milliseconds. Larger work is done by the thread, and by an account one at a time.
const smallFileBytes = 8 * 1024
const smallZoneRecords = 250
const smallBatch = 100
// Files in memory at one time, whoever sends them.
const uploadedBytes = 4 * zoneFileLimitBytes
const timeLimitMs = 60_000

/** A zone file that is being received. */
export type ZoneUpload = {
  /** Throws if the file or all files together are too large, or if another large one of the account is under way. */
  push(chunk: Uint8Array): void
  /** Frees its memory and its place. */
  discard(): void
}

export type ZoneImportOptions = Replacement & { upload: ZoneUpload; signal: AbortSignal }
export type ZoneExportOptions = { options: ExportOptions; signal: AbortSignal }

export type ZoneWork = {
  upload(accountId: string): ZoneUpload
  /** Replaces the records of a zone by those of a file, or tells what that would change. The result is JSON. */
  importZone(actor: Actor, path: string, options: ZoneImportOptions): Promise<ZoneImportResult>
  exportZone(actor: Actor, path: string, options: ZoneExportOptions): Promise<ZoneFileResult>
  /** Works a large batch out; null for a small one, which is done as fast without. */
  planBatch(actor: Actor, path: string, request: BatchRequest): Promise<PlannedBatch | null>
  close(): Promise<void>
}

class Upload implements ZoneUpload {
  readonly #claims: Claims
  readonly #accountId: string
  #chunks: Uint8Array[] = []
  #bytes = 0
  #reserved = 0
  #claimed = false
  #discarded = false

  constructor(claims: Claims, accountId: string) {
    this.#claims = claims
    this.#accountId = accountId
  }

  get isSmall(): boolean {
    return this.#bytes <= smallFileBytes
  }

  push(chunk: Uint8Array): void {
    this.#refuseDiscarded()
    this.#bytes += chunk.length
    if (this.#bytes > zoneFileLimitBytes) throw new Fault('body_too_large')
    if (!this.isSmall) this.claim()
    this.#claims.reserve(chunk.length)
    this.#reserved += chunk.length
    this.#chunks.push(chunk)
  }

  /** What was on its way when the client went must not claim anything that nobody gives back. */
  #refuseDiscarded(): void {
    if (this.#discarded) throw new Fault('invalid_request', 'The connection was closed before the response.')
  }

  claim(): void {
    this.#refuseDiscarded()
    if (!this.#claimed) this.#claims.enter(this.#accountId)
    this.#claimed = true
  }

  /** All of it in one piece that can be handed to the thread; the memory stays counted until `discard`. */
  take(): ArrayBuffer {
    this.#refuseDiscarded()
    const octets = new Uint8Array(this.#bytes)
    let at = 0
    for (const chunk of this.#chunks) {
      octets.set(chunk, at)
      at += chunk.length
    }
    this.#chunks = []
    return octets.buffer
  }

  discard(): void {
    this.#discarded = true
    this.#chunks = []
    this.#claims.reserve(-this.#reserved)
    this.#reserved = 0
    if (this.#claimed) this.#claims.leave(this.#accountId)
    this.#claimed = false
  }
}

/** The accounts that import a large file in this process, and the memory of all files. */
class Claims {
  readonly #accounts = new Set<string>()
  #bytes = 0

  enter(accountId: string): void {
    if (this.#accounts.has(accountId)) throw importInProgress()
    this.#accounts.add(accountId)
  }

  leave(accountId: string): void {
    this.#accounts.delete(accountId)
  }

  reserve(bytes: number): void {
    if (bytes > 0 && this.#bytes + bytes > uploadedBytes) {
      throw new Fault('overloaded', 'Too many large files are being imported.', { retryAfterSeconds: 5 })
    }
    this.#bytes += bytes
  }
}

/** Whether a few octets of a file may stand for very many records. */
const generates = (octets: ArrayBuffer) => /\$generate/i.test(Buffer.from(octets).toString('latin1'))

/** What a zone file depends on, without the rest of the configuration: it is sent to the thread. */
const exported = ({ nameservers, edge }: ExportOptions) => ({ nameservers, edge: { addresses: edge.addresses } })

export type ZoneWorkOptions = { db: Database; databaseUrl: string; log: Logger }

export function createZoneWork({ db, databaseUrl, log }: ZoneWorkOptions): ZoneWork {
  const claims = new Claims()
  const thread = createZoneThread(databaseUrl, log)

  async function isSmallZone(actor: Actor, path: string): Promise<boolean> {
    const { records } = await openZone(db, actor, path)
    return records <= smallZoneRecords
  }

  /** Ends work that takes too long. */
  async function inTime<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const limit = new AbortController()
    const timer = setTimeout(() => {
      const detail = 'Processing the zone took too long. Nothing was changed.'
      limit.abort(new Fault('overloaded', detail, { retryAfterSeconds: 10 }))
    }, timeLimitMs)
    try {
      return await work(AbortSignal.any([signal, limit.signal]))
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    upload: (accountId) => new Upload(claims, accountId),
    importZone(actor, path, { upload, signal, ...wanted }) {
      const replacement = { ...wanted, options: exported(wanted.options) }
      const file = upload as Upload
      return inTime(signal, async (signal) => {
        const isSmall = (await isSmallZone(actor, path)) && file.isSmall
        const octets = file.take()
        if (isSmall && !generates(octets)) {
          const request = { actor, path, file: textOf(octets), ...replacement }
          const pace = async () => signal.throwIfAborted()
          const view = await onConnection(db, (connection) => importRecords(connection, request, pace))
          return { octets: octetsOf(JSON.stringify(view)) }
        }
        file.claim()
        const job = { kind: 'import' as const, actor, path, octets, ...replacement }
        return thread.run(actor.accountId, job, signal)
      })
    },
    exportZone(actor, path, { options, signal }) {
      return inTime(signal, async (signal) => {
        const request = { actor, path, options: exported(options) }
        if (!(await isSmallZone(actor, path))) {
          return thread.run(actor.accountId, { kind: 'export', ...request }, signal)
        }
        const pace = async () => signal.throwIfAborted()
        const { text, etag } = await onConnection(db, (connection) => exportText(connection, request, pace))
        return { octets: octetsOf(text), etag }
      })
    },
    async planBatch(actor, path, { batch, dryRun }) {
      refuseOversized(batch)
      if (sizeOf(batch) <= smallBatch) return null
      const job = { kind: 'batch' as const, actor, path, batch, dryRun }
      // Short enough to be finished, whether the client is still there or not.
      return inTime(new AbortController().signal, (signal) => thread.run(actor.accountId, job, signal))
    },
    close: () => thread.close(),
  }
}
