// Parses the simplest kind of request, a complete GET in one chunk. All others go to Node's parser.

/** Everything that the response to a plain request depends on. */
export type PlainRequest = {
  /** As written in the header. */
  host: string
  /** Starts with a slash and contains only visible ASCII. */
  url: string
  acceptEncoding: string | undefined
  ifNoneMatch: string | undefined
}

// Browsers send one or two KiB, including cookies.
const maxBytes = 8 << 10

// The bytes allowed in header names (tokens), header values and paths. Ambiguous bytes are left out on purpose:
// request smuggling relies on parsers that disagree about them.
const inName = new Uint8Array(256)
const inValue = new Uint8Array(256)
const inUrl = new Uint8Array(256)
for (const char of "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") {
  inName[char.charCodeAt(0)] = 1
}
for (let code = 0x20; code <= 0x7e; code++) {
  inValue[code] = 1
  if (code !== 0x20) inUrl[code] = 1
}
inValue[0x09] = 1

const [cr, lf, space, tab, colon] = [13, 10, 32, 9, 58]
const version = Buffer.from(' HTTP/1.1\r\n', 'latin1')

// Headers that Node has to handle: bodies, ranges, conditions, other protocols, closing the connection.
const notPlain = new Set([
  'connection',
  'content-length',
  'expect',
  'if-match',
  'if-range',
  'if-unmodified-since',
  'keep-alive',
  'proxy-connection',
  'range',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Null unless the bytes are certainly one complete, ordinary HTTP/1.1 GET request. */
export function readPlainRequest(octets: Buffer): PlainRequest | null {
  const size = octets.length
  if (size > maxBytes || size < 28) return null
  // "GET /"
  if (octets[0] !== 71 || octets[1] !== 69 || octets[2] !== 84 || octets[3] !== space || octets[4] !== 47) return null
  if (octets[size - 1] !== lf || octets[size - 2] !== cr || octets[size - 3] !== lf || octets[size - 4] !== cr) {
    return null
  }
  let at = 5
  while (inUrl[octets[at]!] === 1) at++
  const url = octets.toString('latin1', 4, at)
  for (let i = 0; i < version.length; i++) if (octets[at + i] !== version[i]) return null
  at += version.length
  const request: PlainRequest = { host: '', url, acceptEncoding: undefined, ifNoneMatch: undefined }
  let hosts = 0
  // The empty line must come last: anything after it would be another request.
  const end = size - 2
  while (at < end) {
    const start = at
    while (inName[octets[at]!] === 1) at++
    if (at === start || octets[at] !== colon) return null
    const nameEnd = at++
    while (octets[at] === space || octets[at] === tab) at++
    const valueStart = at
    while (inValue[octets[at]!] === 1) at++
    if (octets[at] !== cr || octets[at + 1] !== lf) return null
    const valueEnd = at
    at += 2
    if (!readHeader(start, nameEnd, valueStart, valueEnd)) return null
  }
  return at === end && hosts === 1 ? request : null

  /** False if Node has to handle the request because of this header. */
  function readHeader(start: number, nameEnd: number, valueStart: number, valueEnd: number): boolean {
    // Most headers don't matter here. The length of the name shows that without creating a string.
    const length = nameEnd - start
    if (!relevantLengths[length]) return true
    const name = octets.toString('latin1', start, nameEnd).toLowerCase()
    if (name === 'host') {
      hosts++
      request.host = octets.toString('latin1', valueStart, valueEnd).trimEnd()
    } else if (name === 'accept-encoding') {
      if (request.acceptEncoding !== undefined) return false
      request.acceptEncoding = octets.toString('latin1', valueStart, valueEnd).trimEnd()
    } else if (name === 'if-none-match') {
      if (request.ifNoneMatch !== undefined) return false
      request.ifNoneMatch = octets.toString('latin1', valueStart, valueEnd).trimEnd()
    } else if (name === 'connection') {
      return octets.toString('latin1', valueStart, valueEnd).trimEnd().toLowerCase() === 'keep-alive'
    } else return !notPlain.has(name)
    return true
  }
}

const relevantLengths: boolean[] = []
for (const name of [...notPlain, 'host', 'accept-encoding', 'if-none-match']) relevantLengths[name.length] = true
