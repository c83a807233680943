// Documents that are part of the program, written by a thread when first requested.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { programFile } from '../../platform/installation.ts'
import { type PublicAnswer, publicAnswer } from '../http/responses/public-responses.ts'
import type { Document, Kind } from './worker.ts'

type Documents = Map<string, PublicAnswer>

const program = programFile('src/api/documents/worker')
const opened = new Map<Kind, Promise<Documents>>()

/** Keyed by URL path. */
export function openDocuments(kind: Kind): Promise<Documents> {
  const known = opened.get(kind)
  if (known) return known
  const written = write(kind)
  opened.set(kind, written)
  written.catch(() => opened.delete(kind))
  return written
}

async function write(kind: Kind): Promise<Documents> {
  const worker = new Worker(program, { workerData: kind })
  worker.unref()
  // Rejects if the thread throws.
  const [documents] = (await once(worker, 'message')) as [Document[]]
  return new Map(documents.map(({ path, type, content, caching }) => [path, publicAnswer(type, content, caching)]))
}
