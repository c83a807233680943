// Answers of strangers' servers that are none: an endless announcement of one, or another protocol.
import type { ClientRequest } from 'node:http'

// Some hints are usual. Each is read by itself: a server that sends nothing else would keep the whole process busy.
const maxEarly = 20

/** Ends a request with an error after too many answers before the real one (1xx). */
export function boundEarlyAnswers(request: ClientRequest): void {
  let early = 0
  request.on('information', () => {
    if (++early > maxEarly) request.destroy(new Error(`more than ${maxEarly} answers came before the real one`))
  })
}

/** The same, and a 101 is told to `refuse`: without a listener for it, Node ends the request without a word. */
export function refuseOddAnswers(request: ClientRequest, refuse: (error: Error) => void): void {
  boundEarlyAnswers(request)
  request.on('upgrade', (_response, socket) => {
    socket.destroy()
    refuse(new Error('the server switched protocols'))
  })
}
