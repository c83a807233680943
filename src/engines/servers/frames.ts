// Follows the frames that a WebSocket's server sends, so that the proxy can close the WebSocket between two of them.

const closeOpcode = 8
const goingAway = 1001

/** A close frame from a server: not masked, with only a status. */
export const goingAwayFrame = Buffer.from([0x80 | closeOpcode, 2, goingAway >> 8, goingAway & 0xff])

export type Frames = {
  /** Takes the next octets, however they are cut. */
  pass(octets: Buffer): void
  /** Whether a frame can be inserted here: no frame is incomplete, and the server hasn't closed the WebSocket. */
  readonly isBetween: boolean
}

export function followFrames(): Frames {
  // The header of the current frame as far as it has come, and the octets of the frame that follow it.
  const header = Buffer.alloc(10)
  let headerBytes = 0
  let leftBytes = 0
  let closed = false

  /** Of the whole header, as far as the octets so far tell. A server doesn't mask its frames; if one does, 4 more follow. */
  function headerLength(): number {
    if (headerBytes < 2) return 2
    const length = header[1]! & 0x7f
    return length < 126 ? 2 : length === 126 ? 4 : 10
  }

  function begin(): void {
    const length = header[1]! & 0x7f
    const payload = length < 126 ? length : length === 126 ? header.readUInt16BE(2) : Number(header.readBigUInt64BE(2))
    leftBytes = payload + (header[1]! & 0x80 ? 4 : 0)
    if ((header[0]! & 0x0f) === closeOpcode) closed = true
    headerBytes = 0
  }

  return {
    pass(octets) {
      let at = 0
      while (at < octets.length) {
        if (leftBytes > 0) {
          const taken = Math.min(leftBytes, octets.length - at)
          leftBytes -= taken
          at += taken
          continue
        }
        header[headerBytes++] = octets[at++]!
        if (headerBytes === headerLength()) begin()
      }
    },
    get isBetween() {
      return headerBytes === 0 && leftBytes === 0 && !closed
    },
  }
}
