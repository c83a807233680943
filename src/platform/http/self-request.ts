// Checks whether this process responds to HTTP on its port, by sending itself a request.
import { connect, type Server, type Socket } from 'node:net'
import { connect as connectEncrypted } from 'node:tls'
import { reachableAddress } from '../../dns/listen-address.ts'

const timeoutMs = 1_000

/**
 * Resolves with true once the server has responded. Worker processes share one port and each gets some of the connections,
 * so a response only counts if it came over a connection that this server accepted.
 */
export function createSelfRequest(server: Server, { encrypted = false } = {}): () => Promise<boolean> {
  let answered = false
  return async () => {
    answered ||= await ask(server, encrypted)
    return answered
  }
}

function ask(server: Server, encrypted: boolean): Promise<boolean> {
  const bound = server.address()
  if (bound === null || typeof bound === 'string') return Promise.resolve(false)
  const at = reachableAddress({ host: bound.address, port: bound.port })!
  const accepted = new Set<number | undefined>()
  const note = ({ remotePort }: Socket) => void accepted.add(remotePort)
  server.on('connection', note)
  return new Promise<boolean>((resolve) => {
    // Whether the certificate is valid doesn't matter here.
    const client = encrypted ? connectEncrypted({ ...at, rejectUnauthorized: false }) : connect(at)
    let port: number | undefined
    let head = ''
    const end = (answers: boolean) => {
      clearTimeout(timer)
      server.off('connection', note)
      client.destroy()
      resolve(answers && accepted.has(port))
    }
    const timer = setTimeout(end, timeoutMs, false)
    client.on('connect', () => {
      port = client.localPort
    })
    client.on(encrypted ? 'secureConnect' : 'connect', () => {
      // An invalid host: for an unknown one, the edge would query the database and wait while it is down.
      client.write('HEAD / HTTP/1.1\r\nHost: *\r\nConnection: close\r\n\r\n')
    })
    client.on('data', (chunk) => {
      head += chunk.toString('latin1')
      if (head.length >= 'HTTP/1.1 '.length) end(head.startsWith('HTTP/1.1 '))
    })
    // An alert is a response: without a name, there may be no certificate to present.
    client.on('error', ({ message }) => end(encrypted && message.includes('SSL alert number')))
    client.on('close', () => end(false))
  })
}
