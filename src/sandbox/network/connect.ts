// Connections to servers in the forms that callers need.
import type { RequestOptions } from 'node:http'
import { type NetConnectOpts, connect as open, type Socket } from 'node:net'
import type { Connect } from '../processes/command.ts'

export function connectTo(target: NetConnectOpts): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = open({ noDelay: true, ...target })
  socket.once('error', reject)
  socket.once('connect', () => {
    socket.off('error', reject)
    resolve(socket)
  })
  return promise
}

/** For `http.request`, without an agent. */
export function createConnectionBy(connect: Connect): NonNullable<RequestOptions['createConnection']> {
  return ({ timeout }, done) => {
    connect().then(
      (socket) => {
        // Node listens to the timeout of such a socket, but does not set it.
        if (timeout !== undefined) socket.setTimeout(timeout)
        done(null, socket)
      },
      (error: Error) => done(error, null as never),
    )
    return undefined
  }
}
