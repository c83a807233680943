// Decodes and encodes zone files, and allows one large import at a time per account.
import type { Static } from '@sinclair/typebox'
import { decodeZoneFile, type ZoneText } from '../../../dns/zone-files/zone-file-text.ts'
import type { Db } from '../../../platform/database/database.ts'
import { Fault, invalidField } from '../../../platform/errors.ts'
import type { ZoneImport } from '../../../schemas/zones.ts'
import { tryLockImports, unlockImports } from '../sql/zone-statements.ts'
import { importRecords, type ZoneImportRequest } from './zone-imports.ts'
import type { Pace } from './zones.ts'

export function textOf(octets: ArrayBuffer): ZoneText {
  const file = decodeZoneFile(new Uint8Array(octets))
  if (file.text === '') throw invalidField('#', 'too_short', 'The zone file is empty.')
  return file
}

export function octetsOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}

export function importInProgress(): Fault {
  return new Fault('import_in_progress', undefined, { retryAfterSeconds: 2 })
}

/** Imports while no other process imports a large file of the account. */
export async function importAlone(
  connection: Db,
  request: ZoneImportRequest,
  pace: Pace,
): Promise<Static<typeof ZoneImport>> {
  const { accountId } = request.actor
  const [lock] = await tryLockImports(connection, { accountId })
  if (!lock!.held) throw importInProgress()
  try {
    return await importRecords(connection, request, pace)
  } finally {
    // After an unexpected error the connection is closed, which releases the lock as well.
    await unlockImports(connection, { accountId }).catch(() => {})
  }
}
