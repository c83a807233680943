// UDP and TCP on one address and one port.
import type { Logger } from 'pino'
import type { NameserverMetrics } from './metrics.ts'
import type { Responder } from './responder.ts'
import { listenTcp, type TcpLimits } from './tcp.ts'
import { listenUdp } from './udp.ts'

export type ListenAddress = { host: string; port: number }
export type Listeners = ListenAddress & { close(): Promise<void> }

const portAttempts = 5

/** With port 0 the system chooses. It chooses for UDP alone, so TCP may find that port taken: then another is tried. */
export async function listenOn(
  { host, port }: ListenAddress,
  responder: Responder,
  metrics: NameserverMetrics,
  log: Logger,
  limits?: Partial<TcpLimits>,
): Promise<Listeners> {
  for (let attempt = 1; ; attempt++) {
    const udp = await listenUdp(host, port, responder, metrics, log)
    try {
      const tcp = await listenTcp(host, udp.port, responder, metrics, limits)
      const close = async () => {
        await tcp.close()
        await udp.close()
      }
      return { host, port: udp.port, close }
    } catch (error) {
      await udp.close()
      if (port !== 0 || attempt === portAttempts) throw error
    }
  }
}
