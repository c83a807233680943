// A client that only makes full TLS handshakes; a separate process.
import { connect, createSecureContext } from 'node:tls'
import { answerParent } from '../children.ts'

/** Repeats one name for some time, or uses each name once. */
export type Load = { port: number; names: string[]; seconds: number | null }
export type Result = { handshakes: number; elapsedMs: number }

const maxParallel = 32

// The edge and newer clients agree on a post-quantum key exchange that not every peer supports. Here both do the same
// work.
const secureContext = createSecureContext({ ecdhCurve: 'X25519' })

/** Offers no session, so that every handshake is full, and closes in order, so that the server completes it too. */
function handshake(port: number, servername: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', servername, secureContext, rejectUnauthorized: false })
    socket.once('secureConnect', () => socket.end())
    socket.resume().once('close', () => resolve())
    socket.once('error', (error) => reject(new Error(`${servername}: ${error.message}`)))
  })
}

async function run({ port, names, seconds }: Load): Promise<Result> {
  const startedMs = performance.now()
  const endMs = seconds === null ? Number.POSITIVE_INFINITY : startedMs + seconds * 1000
  const max = seconds === null ? names.length : Number.POSITIVE_INFINITY
  let next = 0
  let handshakes = 0
  const visitor = async () => {
    while (next < max && performance.now() < endMs) {
      await handshake(port, names[next++ % names.length]!)
      handshakes++
    }
  }
  await Promise.all(Array.from({ length: maxParallel }, visitor))
  return { handshakes, elapsedMs: performance.now() - startedMs }
}

answerParent(run, async () => {})
