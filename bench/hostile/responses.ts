// Hostile output of a customer's server: to visitors through the edge, and to its log.

import type { Repeated } from './payloads.ts'
import * as payloads from './payloads.ts'
import { type Send, type Surface, surface } from './surface.ts'
import { exchange, head } from './wire.ts'

type Order = Repeated & { to: 'visitor' | 'log' }

const said =
  (order: Order): Send =>
  ({ edgePort, server, bytes }) => {
    const times = Math.max(1, Math.floor(bytes / order.piece.length))
    const text = Buffer.from(JSON.stringify({ ...order, times }))
    const headers = ['Connection: close', `Content-Length: ${text.length}`]
    return exchange(edgePort, head({ method: 'POST', path: '/say', host: server, headers }), text)
  }

export const responses: Surface = surface(payloads.responses, (answer) => said({ ...answer, to: 'visitor' }))
export const logs: Surface = surface(payloads.output, (line) => said({ ...line, to: 'log' }))
