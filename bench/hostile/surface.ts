// A way into the platform, and how hostile bytes take it.

export type Target = {
  apiPort: number
  token: string
  edgePort: number
  httpsPort: number
  dnsPort: number
  /** A name that is answered, and a zone of the hostile account, which is also the domain of its server project. */
  dnsName: string
  zone: string
  /** The hosts of the hostile account's server project, and of the sites with rules. */
  server: string
  sites: Record<string, string>
  /** How much one message carries. */
  bytes: number
}

/** Sends one message and resolves when it is over, with how it ended. */
export type Send = (target: Target) => Promise<string>

export type Surface = { plain: Send; shapes: Record<string, Send> }

export const pieceSizes = [1, 16, 256] as const

/** A surface on which every payload is sent alike. */
export function surface<Payload>(
  { plain, shapes }: { plain: Payload; shapes: Record<string, Payload> },
  send: (payload: Payload) => Send,
): Surface {
  const sent = Object.entries(shapes).map(([name, payload]) => [name, send(payload)] as const)
  return { plain: send(plain), shapes: Object.fromEntries(sent) }
}
