// The kinds of load for a server project.
import { join } from 'node:path'
import type { Child } from '../children.ts'
import { loadWith } from '../edge/visits.ts'
import type { MessageLoad } from './messages.ts'

export const loadNames = [
  'Responses of 2 KB',
  'Uploads of 64 KB',
  'Responses of 1 MB',
  'Server-sent events of 100 bytes',
  'WebSocket echoes',
] as const

export type Load = {
  name: (typeof loadNames)[number]
  /** The counted unit, and how many of them a request makes. */
  unit: string
  perRequest: number
  /** Requests per second. */
  run(port: number, host: string, seconds: number): Promise<number>
}

const upload = join(import.meta.dirname, 'upload.lua')

export function loadsBy(wrk: string, messages: Child): Load[] {
  const byWrk = (path: string, connections: number, more: string[] = []): Load['run'] => {
    return (port, host, seconds) => {
      const options = ['-c', String(connections), '-H', `Host: ${host}`, ...more]
      return loadWith(wrk, `http://127.0.0.1:${port}${path}`, seconds, options)
    }
  }
  return [
    { name: 'Responses of 2 KB', unit: 'requests', perRequest: 1, run: byWrk('/', 32) },
    { name: 'Uploads of 64 KB', unit: 'requests', perRequest: 1, run: byWrk('/upload', 32, ['-s', upload]) },
    { name: 'Responses of 1 MB', unit: 'MB', perRequest: 1, run: byWrk('/large', 8) },
    { name: 'Server-sent events of 100 bytes', unit: 'events', perRequest: 100, run: byWrk('/events', 32) },
    {
      name: 'WebSocket echoes',
      unit: 'messages',
      perRequest: 1,
      run: (port, host, seconds) =>
        messages.ask<number>({ port, host, connections: 32, seconds } satisfies MessageLoad),
    },
  ]
}
