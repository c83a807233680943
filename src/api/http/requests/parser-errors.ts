// Errors of Node's HTTP parser, which no hook or handler sees, as regular problem responses.
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { Fault, type FaultCode } from '../../../platform/errors.ts'
import { randomLabel } from '../../../platform/ids.ts'
import { problemOf, statuses } from '../responses/problem.ts'
import { apiVersion } from '../responses/versions.ts'

const codes: Record<string, FaultCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

// Node's internal field: the response being written to the socket.
type Answering = Socket & { _httpMessage?: { headersSent: boolean } | null }

export function createParserErrors(
  baseUrl: string,
  cors: Record<string, string>,
  addressLeft: (ip: string) => Record<string, string>,
) {
  return (error: NodeJS.ErrnoException, socket: Answering): void => {
    const isAnswered = socket._httpMessage?.headersSent ?? false
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswered) return void socket.destroy(error)
    const fault = new Fault(codes[error.code ?? ''] ?? 'invalid_request', undefined, { cause: error })
    const requestId = `req_${randomLabel(20)}`
    const status = statuses[fault.code]
    const body = JSON.stringify(problemOf(fault, baseUrl, requestId))
    const headers = {
      'content-type': 'application/problem+json',
      'content-length': Buffer.byteLength(body),
      'x-request-id': requestId,
      'api-version': apiVersion,
      ...cors,
      ...addressLeft(socket.remoteAddress ?? ''),
      connection: 'close',
    }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`, () => socket.destroy())
  }
}
