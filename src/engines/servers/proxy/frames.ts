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

// What the next octet of a frame is: its first one, its second one, or part of a long length.
const first = 0
const second = 1

/** A server may send endless frames of two octets, so this makes no calls in its loop: with them, it took twice as long. */
export function followFrames(): Frames {
  // Above `second`, how many octets of the length are missing, and one more.
  let place = first
  let payload = 0
  // A server doesn't mask its frames; if one does, 4 more octets follow the length.
  let maskBytes = 0
  // The octets of the frame after its header.
  let leftBytes = 0
  let closed = false

  return {
    pass(octets) {
      const end = octets.length
      let at = leftBytes
      // V8 keeps local variables in registers.
      let next = place
      while (at < end) {
        const octet = octets[at++]!
        if (next === first) {
          next = second
          if ((octet & 0x0f) === closeOpcode) closed = true
        } else if (next === second) {
          const length = octet & 0x7f
          maskBytes = octet & 0x80 ? 4 : 0
          payload = 0
          next = length < 126 ? first : second + (length === 126 ? 2 : 8)
          if (next === first) at += length + maskBytes
        } else {
          payload = payload * 256 + octet
          if (--next > second) continue
          next = first
          at += payload + maskBytes
        }
      }
      leftBytes = at - end
      place = next
    },
    get isBetween() {
      return place === first && leftBytes === 0 && !closed
    },
  }
}
