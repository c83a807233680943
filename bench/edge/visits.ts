// Visitors: wrk for throughput, and one connection that measures the time to first byte.
import { execFile } from 'node:child_process'
import { connect } from 'node:net'
import { promisify } from 'node:util'
import { maxSliceSeconds } from '../slices.ts'

const run = promisify(execFile)

/** Requests per second of a slice of load. Throws for any response but 2xx. */
export function load(
  program: string,
  url: string,
  header: string,
  { connections, seconds }: { connections: number; seconds: number },
) {
  return loadWith(program, url, seconds, ['-c', String(connections), '-H', header])
}

/** The same with other options of wrk. */
export async function loadWith(program: string, url: string, seconds: number, options: string[]): Promise<number> {
  // A slow response isn't wrong; without a timeout, wrk counts every response after two seconds as an error.
  const args = ['-t', '2', '-d', `${seconds}s`, '--timeout', `${maxSliceSeconds}s`, ...options, url]
  const { stdout } = await run(program, args)
  const perSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1])
  const isWrong = /Non-2xx|Socket errors/.test(stdout)
  // wrk can't wait for its first response, so it is given more time instead.
  if (perSecond === 0 && !isWrong && seconds < maxSliceSeconds) return loadWith(program, url, 2 * seconds, options)
  if (!(perSecond > 0) || isWrong) throw new Error(`${url} under load:\n${stdout}`)
  return perSecond
}

export type Visitor = {
  /** Milliseconds from the request to the first byte of its response, which is read completely. */
  firstByte(host: string, path: string): Promise<number>
  leave(): void
}

export async function arrive(port: number): Promise<Visitor> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return {
    firstByte: (host, path) =>
      new Promise((resolve, reject) => {
        let firstMs = 0
        let missing: number | null = null
        let received = ''
        const done = (error?: Error) => {
          socket.off('data', take).off('close', broken).off('error', done)
          if (error) reject(error)
          else resolve(firstMs)
        }
        const broken = () => done(new Error(`the edge closed the connection of ${host}`))
        const take = (chunk: Buffer) => {
          if (firstMs === 0) firstMs = performance.now() - startedMs
          if (missing !== null) missing -= chunk.length
          else {
            received += chunk.toString('latin1')
            const end = received.indexOf('\r\n\r\n')
            if (end < 0) return
            const length = /\r\ncontent-length: (\d+)/i.exec(received)?.[1]
            if (!received.startsWith('HTTP/1.1 200 ') || !length) return done(new Error(`${host}${path}: ${received}`))
            missing = Number(length) - (received.length - end - 4)
          }
          if (missing <= 0) done()
        }
        socket.on('data', take).on('close', broken).on('error', done)
        const startedMs = performance.now()
        socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      }),
    leave: () => void socket.destroy(),
  }
}
