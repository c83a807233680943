// HTTP/2 frame by frame, for what no client library would send.
import type { HttpsWorld } from './https-world.ts'

export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.set([type, flags], 3)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** POST https /, by the static table, and the host spelt out. */
export const postHead = Buffer.concat([
  Buffer.from([0x83, 0x87, 0x84, 0x41, 'server.test'.length]),
  Buffer.from('server.test'),
])

/** A connection to the server that sends these frames at once. */
export async function openRaw(world: HttpsWorld, frames: Buffer[]) {
  const socket = await world.handshake('server.test', { ca: world.authority.rootPem, ALPNProtocols: ['h2'] })
  const heard: Buffer[] = []
  socket.on('error', () => {}).on('data', (octets) => heard.push(octets))
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  socket.write(Buffer.concat([frame(4, 0, 0, Buffer.alloc(0)), ...frames]))
  /** The codes with which the edge ended the session. */
  function goaways(): number[] {
    const answers = Buffer.concat(heard)
    const codes: number[] = []
    for (let at = 0; at + 9 <= answers.length; at += 9 + answers.readUIntBE(at, 3)) {
      if (answers[at + 3] === 7) codes.push(answers.readUInt32BE(at + 13))
    }
    return codes
  }
  return { socket, goaways }
}
