// A raw client connection: sends exact bytes and records everything received.
import { type AddressInfo, connect, type Socket } from 'node:net'
import { listenOnce, type TestApi } from './api.ts'
import { closed } from './closed.ts'
import { until } from './until.ts'

export type Connection = {
  socket: Socket
  send(text: string): void
  /** Everything received so far. */
  text(): string
  /** The statuses of the responses so far. */
  statuses(): number[]
  /** Waits until this many responses have started, and returns their statuses. */
  answers(count: number): Promise<number[]>
  ended: Promise<void>
}

export async function listening(api: Pick<TestApi, 'app'>): Promise<number> {
  await listenOnce(api.app)
  return (api.app.server.address() as AddressInfo).port
}

export async function openConnection(api: Pick<TestApi, 'app'>): Promise<Connection> {
  const socket = connect(await listening(api), '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))
  return {
    socket,
    send: (bytes) => void socket.write(bytes, 'latin1'),
    text: () => text,
    statuses,
    async answers(count) {
      await until(() => statuses().length >= count)
      return statuses()
    },
    ended: closed(socket),
  }
}

/** The bytes of a request with a token; content-length covers all of `body`, even if only part of it is sent. */
export function requestOf(token: string, method: string, path: string, extra: Record<string, string> = {}): string {
  const headers = Object.entries({ host: 'x', authorization: `Bearer ${token}`, ...extra })
  return `${method} /api${path} HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
}
