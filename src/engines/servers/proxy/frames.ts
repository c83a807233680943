// Tracks the frames that a WebSocket server sends, so that the proxy can insert a close frame between two of them.

const closeOpcode = 8
const goingAway = 1001

/** An unmasked close frame with only a status. */
export const goingAwayFrame = Buffer.from([0x80 | closeOpcode, 2, goingAway >> 8, goingAway & 0xff])

export type Frames = {
  /** Processes the next bytes, however they are split. */
  pass(octets: Buffer): void
  /** Whether a frame can be inserted here: no frame is incomplete, and the server hasn't closed the WebSocket. */
  readonly isBetween: boolean
}

// Positions within a frame's header.
const first = 0
const second = 1

/** Servers may send endless two-byte frames, so the loop makes no calls, which doubled its time. */
export function followFrames(): Frames {
  // `first`, `second`, or `second` plus the number of missing length bytes.
  let place = first
  let payload = 0
  // Servers shouldn't mask frames, but if one does, 4 more bytes follow the length.
  let maskBytes = 0
  // How many bytes of the current frame are missing after its header.
  let leftBytes = 0
  let closed = false

  return {
    pass(octets) {
      const end = octets.length
      let at = leftBytes
      // A local variable, which V8 keeps in a register.
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
