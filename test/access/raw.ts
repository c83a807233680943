// HTTP as bytes on a socket: nothing tidies the path or the headers up before they reach the server.
import { connect } from 'node:net'
import { newAddress } from './send.ts'

export type RawAnswer = { status: number; headers: Record<string, string>; text: string }

function read(bytes: string): RawAnswer {
  const end = bytes.indexOf('\r\n\r\n')
  const [line = '', ...lines] = bytes.slice(0, end).split('\r\n')
  const headers = Object.fromEntries(
    lines.map((text) => [text.slice(0, text.indexOf(':')).toLowerCase(), text.slice(text.indexOf(':') + 1).trim()]),
  )
  return { status: Number(line.split(' ')[1] ?? 0), headers, text: bytes.slice(end + 4) }
}

/**
 * Sends the bytes and gives what came back, as soon as `enough` of it has, or when the server closes the connection.
 * Bytes are latin1, so any of them can be written.
 */
export function exchange(port: number, bytes: string, enough?: (text: string) => boolean): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.from(bytes, 'latin1')))
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`no whole answer to ${bytes.slice(0, 200)}: ${text.slice(0, 500)}`))
    }, 30_000)
    const done = () => {
      clearTimeout(timer)
      socket.destroy()
      resolve(read(text))
    }
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (enough?.(text)) done()
    })
    socket.on('end', done)
    socket.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' ? done() : reject(error)))
  })
}

/** One request whose target stands in its first line just as given; of its own address to a server that trusts us. */
export function rawRequest(
  port: number,
  method: string,
  target: string,
  headers: Record<string, string> = {},
  enough?: (text: string) => boolean,
): Promise<RawAnswer> {
  const lines = Object.entries({ host: 'localhost', connection: 'close', 'x-forwarded-for': newAddress(), ...headers })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return exchange(port, `${method} ${target} HTTP/1.1\r\n${head}\r\n`, enough)
}
