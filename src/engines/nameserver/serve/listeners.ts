// UDP and TCP on the same address and port.
import type { Logger } from 'pino'
import type { ListenAddress } from '../../../dns/listen-address.ts'
import type { NameserverMetrics } from '../answer/metrics.ts'
import type { Responder } from './responder.ts'
import { listenTcp, type TcpLimits } from './tcp.ts'
import { listenUdp } from './udp.ts'

export type Listeners = ListenAddress & { close(): Promise<void> }

export type ListenOptions = {
  metrics: NameserverMetrics
  log: Logger
  limits?: Partial<TcpLimits>
  /** Without it, this thread answers over UDP as well. */
  openUdp?(address: ListenAddress): Promise<{ close(): Promise<void> }>
}

const portAttempts = 5

/**
 * With port 0, the system chooses a port for TCP, which may be in use for UDP; then another one is tried. TCP is opened
 * first because it fails if another server has the port, while UDP might share the port with that server.
 */
export async function listenOn(
  { host, port: wanted }: ListenAddress,
  responder: Responder,
  { metrics, log, limits, openUdp = (address) => listenUdp(address, responder, metrics, log) }: ListenOptions,
): Promise<Listeners> {
  for (let attempt = 1; ; attempt++) {
    const tcp = await listenTcp({ host, port: wanted }, responder, metrics, limits)
    try {
      const udp = await openUdp({ host, port: tcp.port })
      const close = async () => {
        await tcp.close()
        await udp.close()
      }
      return { host, port: tcp.port, close }
    } catch (error) {
      await tcp.close()
      if (wanted !== 0 || attempt === portAttempts) throw error
    }
  }
}
