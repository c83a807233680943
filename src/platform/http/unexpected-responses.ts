// Guards against servers that send endless 1xx responses or switch protocols instead of responding.
import type { ClientRequest } from 'node:http'

// Some are normal. Node emits an event for each, so a server that sends nothing else would keep the process busy.
const maxEarlyResponses = 20

/** Ends a request with an error after too many 1xx responses. */
export function limitEarlyResponses(request: ClientRequest): void {
  let early = 0
  request.on('information', () => {
    if (++early > maxEarlyResponses)
      request.destroy(new Error(`more than ${maxEarlyResponses} answers came before the real one`))
  })
}

/** Also rejects a 101. Without a listener for it, Node ends the request without an error. */
export function rejectUnexpectedResponses(request: ClientRequest, reject: (error: Error) => void): void {
  limitEarlyResponses(request)
  request.on('upgrade', (_response, socket) => {
    socket.destroy()
    reject(new Error('the server switched protocols'))
  })
}
