// The thread that writes one kind of document. In the API's own thread, this would block the event loop for two
// seconds.
import { parentPort, workerData } from 'node:worker_threads'

export type Document = { path: string; type: string; content: string | Uint8Array; caching?: 'for ever' }

export type Kind = keyof typeof writers

const writers = {
  guides: async (): Promise<Document[]> => (await import('./guides.ts')).renderGuides(),
  reference: async (): Promise<Document[]> => (await import('./reference.ts')).openReference(),
  openapi: async (): Promise<Document[]> => (await import('./openapi.ts')).readOpenApi(),
}

parentPort?.postMessage(await writers[workerData as Kind]())
