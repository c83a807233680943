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

/** Work to start, or the number of work that nobody waits for any more. */
export type ToThread = { id: number; job: ZoneJob } | { cancel: number }

/** An error as it travels: a fault, or the parts of any other one by which it is told apart. */
export type SentError =
  | { fault: FaultCode; detail: string; members: FaultMembers }
  | { message: string; code: string | undefined; stack: string | undefined }

/** A zone file or JSON as octets, so that the main thread need not serialize anything. */
export type ZoneFileResult = { octets: Uint8Array<ArrayBuffer>; etag: string }
export type ZoneImportResult = { octets: Uint8Array<ArrayBuffer> }

export type Results = { import: ZoneImportResult; export: ZoneFileResult; batch: PlannedBatch }
export type AnyResult = Results[keyof Results]

export type FromThread = { id: number } & ({ result: AnyResult } | { error: SentError })

export function packError(error: unknown): SentError {
  if (error instanceof Fault) return { fault: error.code, detail: error.message, members: error.members }
  const { message, code, stack } = error as Error & { code?: string }
  return { message: String(message), code, stack }
}

export function unpackError(sent: SentError): Error {
  if ('fault' in sent) return new Fault(sent.fault, sent.detail, sent.members)
  return Object.assign(new Error(sent.message), { code: sent.code, stack: sent.stack })
}
