// Messages between the main thread and the thread that works on large zones.
import { Fault, type FaultCode, type FaultMembers } from '../../../platform/errors.ts'
import type { Actor } from '../../identity/index.ts'
import type { BatchRequest, PlannedBatch } from '../records/batches.ts'
import type { Replacement } from '../zones/zone-imports.ts'
import type { ZoneExport } from '../zones/zones.ts'

export type ThreadData = { databaseUrl: string; connections: number }

export type ZoneJob =
  | ({ kind: 'import'; actor: Actor; path: string; octets: ArrayBuffer } & Replacement)
  | ({ kind: 'export' } & ZoneExport)
  | ({ kind: 'batch'; actor: Actor; path: string } & BatchRequest)

/** A job to start, or the id of a job to cancel. */
export type ToThread = { id: number; job: ZoneJob } | { cancel: number }

/** A serialized error: a fault, or the identifying parts of another error. */
export type SerializedError =
  | { fault: FaultCode; detail: string; members: FaultMembers }
  | { message: string; code: string | undefined; stack: string | undefined }

/** A zone file or JSON as bytes, so the main thread need not serialize anything. */
export type ZoneFileResult = { octets: Uint8Array<ArrayBuffer>; etag: string }
export type ZoneImportResult = { octets: Uint8Array<ArrayBuffer> }

export type Results = { import: ZoneImportResult; export: ZoneFileResult; batch: PlannedBatch }
export type AnyResult = Results[keyof Results]

export type FromThread = { id: number } & ({ result: AnyResult } | { error: SerializedError })

export function serializeError(error: unknown): SerializedError {
  if (error instanceof Fault) return { fault: error.code, detail: error.message, members: error.members }
  const { message, code, stack } = error as Error & { code?: string }
  return { message: String(message), code, stack }
}

export function deserializeError(sent: SerializedError): Error {
  if ('fault' in sent) return new Fault(sent.fault, sent.detail, sent.members)
  return Object.assign(new Error(sent.message), { code: sent.code, stack: sent.stack })
}
