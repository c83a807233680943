// A surface of the platform, and how to send bytes to it.

export type Target = {
  apiPort: number
  token: string
  edgePort: number
  httpsPort: number
  dnsPort: number
  /** An existing name, and a zone of the hostile account, which is also the domain of its server project. */
  dnsName: string
  zone: string
  /** The hosts of the hostile account's server project and of its sites with rules. */
  server: string
  sites: Record<string, string>
  /** The size of one message. */
  bytes: number
}

/** Sends a message; resolves with how it ended. */
export type Send = (target: Target) => Promise<string>

export type Surface = { plain: Send; shapes: Record<string, Send> }

export const pieceSizes = [1, 16, 256] as const

/** A surface that sends every payload the same way. */
export function surface<Payload>(
  { plain, shapes }: { plain: Payload; shapes: Record<string, Payload> },
  send: (payload: Payload) => Send,
): Surface {
  const sent = Object.entries(shapes).map(([name, payload]) => [name, send(payload)] as const)
  return { plain: send(plain), shapes: Object.fromEntries(sent) }
}
