// Sends a GET to production through an edge. Follows no redirects and only uses the status of the response.
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { ListenAddress } from '../../dns/listen-address.ts'
import type { EdgeEndpoints } from './edge-endpoints.ts'

const connectTimeoutMs = 5_000
// A server that streams more has done its work, or never ends.
const maxBytes = 10 * 1024 * 1024

/** No edge was reachable, or it ended the connection. The message is for the owner. */
export class CallFailed extends Error {}

export type ProductionCall = { path: string; headers: Record<string, string> & { host: string } }

function open({ host, port }: ListenAddress, ca: string[] | null, servername: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = ca
      ? connectTls({ host, port, servername, ca, ALPNProtocols: ['http/1.1'] })
      : connect({ host, port })
    const fail = (error: Error) => {
      socket.destroy()
      reject(error)
    }
    const timer = setTimeout(() => fail(new Error('no connection within 5 s')), connectTimeoutMs)
    socket.once('error', fail)
    socket.once(ca ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      socket.off('error', fail)
      resolve(socket)
    })
    socket.once('close', () => clearTimeout(timer))
  })
}

/** Connects to the first reachable edge. Nothing has been sent yet, so trying several is safe. */
async function connectToEdge({ addresses, ca }: EdgeEndpoints, host: string, signal: AbortSignal): Promise<Socket> {
  const servername = host.replace(/:\d+$/, '')
  let reason = 'none is configured'
  for (const address of addresses) {
    signal.throwIfAborted()
    try {
      return await open(address, ca, servername)
    } catch (error) {
      reason = (error as Error).message
    }
  }
  throw new CallFailed(`No edge could be reached: ${reason}.`)
}

/** `ended` is whether the response was complete before the abort. */
export async function callProduction(
  endpoints: EdgeEndpoints,
  { path, headers }: ProductionCall,
  signal: AbortSignal,
): Promise<{ status: number; ended: boolean }> {
  const socket = await connectToEdge(endpoints, headers.host, signal)
  return new Promise<{ status: number; ended: boolean }>((resolve, reject) => {
    const sent = request({ createConnection: () => socket, path, headers, signal })
    let status: number | null = null
    sent.on('error', (error) => {
      if (status !== null) resolve({ status, ended: false })
      else reject(signal.aborted ? error : new CallFailed(`The connection failed: ${error.message}.`))
    })
    sent.on('upgrade', (_response, upgraded) => {
      upgraded.destroy()
      reject(new CallFailed('Production switched protocols.'))
    })
    sent.on('response', (response) => {
      const answered = response.statusCode!
      status = answered
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > maxBytes) response.destroy()
      })
      response.on('error', () => {})
      response.on('close', () => resolve({ status: answered, ended: response.complete || bytes > maxBytes }))
    })
    sent.end()
  })
}
