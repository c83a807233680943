// The thread that writes one kind of document and ends. Written in the API's own thread, they held it up for two seconds.
import { parentPort, workerData } from 'node:worker_threads'

export type Document = { path: string; type: string; content: string | Uint8Array; caching?: 'for ever' }

export type Kind = keyof typeof writers

const writers = {
  guides: async (): Promise<Document[]> => (await import('./guides.ts')).renderGuides(),
  reference: async (): Promise<Document[]> => (await import('./reference.ts')).openReference(),
  openapi: async (): Promise<Document[]> => (await import('./openapi.ts')).readOpenApi(),
}

parentPort?.postMessage(await writers[workerData as Kind]())
