// Parses the head of a server's response. Refuses anything that two parsers could read differently.

export type ResponseHead = {
  status: number
  reason: string
  /** Alternating names and values, unchanged. */
  headers: string[]
  /** The `Connection` headers, joined. */
  connection: string | undefined
  /** The body's length; null if it is chunked or ends with the connection. */
  length: number | null
  chunked: boolean
  keepAlive: boolean
  /** How long the server promises to keep an idle connection open (`Keep-Alive: timeout=5`); 0 without a promise. */
  keepAliveMs: number
}

export class MalformedResponse extends Error {
  override name = 'MalformedResponse'
}

// RFC 9112, sections 4 and 5: no folded lines, no space before a colon, no control characters.
const grammar =
  /^HTTP\/1\.[01] [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[!#$%&'*+\-.^_`|~\dA-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/

const [tab, space] = [9, 32]
// Each header costs about a microsecond, and 16 KiB can hold thousands. Servers send a few dozen.
const maxHeaders = 500

/** `text` is latin1, from the status line up to, but without, the empty line. */
export function parseHead(text: string): ResponseHead {
  if (!grammar.test(text)) throw new MalformedResponse('the head of the answer is not HTTP/1.1')
  const headers: string[] = []
  let connection: string | undefined
  let transferEncoding: string | undefined
  let contentLength: string | undefined
  let keepAliveMs = 0
  let at = text.indexOf('\r\n') + 2
  while (at < text.length) {
    const colon = text.indexOf(':', at)
    const end = text.indexOf('\r\n', colon)
    const name = text.slice(at, colon)
    const value = trim(text, colon + 1, end)
    at = end + 2
    headers.push(name, value)
    if (headers.length > 2 * maxHeaders) throw new MalformedResponse('the answer has too many headers')
    // Comparing lengths skips most other headers without creating a string.
    if (name.length === 10) {
      const lower = name.toLowerCase()
      if (lower === 'connection') connection = connection === undefined ? value : `${connection}, ${value}`
      else if (lower === 'keep-alive') keepAliveMs = Number(/\btimeout=(\d{1,6})\b/i.exec(value)?.[1] ?? 0) * 1000
    } else if (name.length === 14 && name.toLowerCase() === 'content-length') {
      if (contentLength !== undefined) throw new MalformedResponse('the answer has two lengths')
      contentLength = value
    } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      if (transferEncoding !== undefined) throw new MalformedResponse('the answer has two transfer encodings')
      transferEncoding = value
    }
  }
  const isHttp11 = text.charCodeAt(7) === 0x31
  if (transferEncoding !== undefined) {
    if (contentLength !== undefined) throw new MalformedResponse('the answer has a length and a transfer encoding')
    if (!isHttp11 || transferEncoding.toLowerCase() !== 'chunked') {
      throw new MalformedResponse('the answer has a transfer encoding that is not chunked')
    }
  }
  if (contentLength !== undefined && !/^\d{1,15}$/.test(contentLength)) {
    throw new MalformedResponse('the length of the answer is not a number')
  }
  return {
    status: Number(text.slice(9, 12)),
    reason: text.slice(13, text.indexOf('\r\n')),
    headers,
    connection,
    length: contentLength === undefined ? null : Number(contentLength),
    chunked: transferEncoding !== undefined,
    keepAlive: isHttp11 ? !hasOption(connection, 'close') : hasOption(connection, 'keep-alive'),
    keepAliveMs,
  }
}

/** String.trim would also remove the byte 0xa0, which may be part of a character. */
function trim(text: string, start: number, end: number): string {
  while (start < end && (text.charCodeAt(start) === space || text.charCodeAt(start) === tab)) start++
  while (end > start && (text.charCodeAt(end - 1) === space || text.charCodeAt(end - 1) === tab)) end--
  return text.slice(start, end)
}

function hasOption(connection: string | undefined, option: string): boolean {
  if (connection === undefined) return false
  return connection.split(',').some((one) => one.trim().toLowerCase() === option)
}
