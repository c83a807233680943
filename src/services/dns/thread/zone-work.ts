// Imports and exports zones, small ones on the event loop and large ones in a thread, with limited memory.
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

// Up to these sizes, work takes a few milliseconds on the event loop. Larger work goes to the thread.
const smallFileBytes = 8 * 1024
const smallZoneRecords = 250
const smallBatch = 100
// Total size of files in memory at a time.
const maxUploadedBytes = 4 * zoneFileLimitBytes
const timeLimitMs = 60_000

/** A zone file that is being received. */
export type ZoneUpload = {
  /** Throws if this file or all files together are too large, or the account has another large upload in progress. */
  push(chunk: Uint8Array): void
  /** Frees its memory and the account's slot. */
  discard(): void
}

export type ZoneImportOptions = Replacement & { upload: ZoneUpload; signal: AbortSignal }
export type ZoneExportOptions = { options: ExportOptions; signal: AbortSignal }

export type ZoneWork = {
  upload(accountId: string): ZoneUpload
  /** Replaces the records of a zone with those of a file, or previews the changes. The result is JSON. */
  importZone(actor: Actor, path: string, options: ZoneImportOptions): Promise<ZoneImportResult>
  exportZone(actor: Actor, path: string, options: ZoneExportOptions): Promise<ZoneFileResult>
  /** Plans a large batch in the thread; returns null for a small one, which needs no plan. */
  planBatch(actor: Actor, path: string, request: BatchRequest): Promise<PlannedBatch | null>
  close(): Promise<void>
}

class Upload implements ZoneUpload {
  readonly #claims: UploadLimits
  readonly #accountId: string
  #chunks: Uint8Array[] = []
  #bytes = 0
  #reserved = 0
  #claimed = false
  #discarded = false

  constructor(claims: UploadLimits, accountId: string) {
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

  /** Chunks that arrive after the client disconnected must not claim anything, because nobody would release it. */
  #refuseDiscarded(): void {
    if (this.#discarded) throw new Fault('invalid_request', 'The connection was closed before the response.')
  }

  claim(): void {
    this.#refuseDiscarded()
    if (!this.#claimed) this.#claims.enter(this.#accountId)
    this.#claimed = true
  }

  /** Returns the file as one transferable buffer; its memory counts until `discard`. */
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

/** The accounts with a large import in this process, and the memory of all files. */
class UploadLimits {
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
    if (bytes > 0 && this.#bytes + bytes > maxUploadedBytes) {
      throw new Fault('overloaded', 'Too many large files are being imported.', { retryAfterSeconds: 5 })
    }
    this.#bytes += bytes
  }
}

/** Whether the file may generate many records from a few bytes. */
const hasGenerate = (octets: ArrayBuffer) => /\$generate/i.test(Buffer.from(octets).toString('latin1'))

/** The settings on which a zone file depends, to send to the thread. */
const exportSettings = ({ nameservers, edge }: ExportOptions) => ({ nameservers, edge: { addresses: edge.addresses } })

export type ZoneWorkOptions = { db: Database; databaseUrl: string; log: Logger }

export function createZoneWork({ db, databaseUrl, log }: ZoneWorkOptions): ZoneWork {
  const claims = new UploadLimits()
  const thread = createZoneThread(databaseUrl, log)

  async function isSmallZone(actor: Actor, path: string): Promise<boolean> {
    const { records } = await openZone(db, actor, path)
    return records <= smallZoneRecords
  }

  /** Aborts work that takes too long. */
  async function withTimeout<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
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
      const replacement = { ...wanted, options: exportSettings(wanted.options) }
      const file = upload as Upload
      return withTimeout(signal, async (signal) => {
        const isSmall = (await isSmallZone(actor, path)) && file.isSmall
        const octets = file.take()
        if (isSmall && !hasGenerate(octets)) {
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
      return withTimeout(signal, async (signal) => {
        const request = { actor, path, options: exportSettings(options) }
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
      // Short enough to finish even if the client disconnects.
      return withTimeout(new AbortController().signal, (signal) => thread.run(actor.accountId, job, signal))
    },
    close: () => thread.close(),
  }
}
