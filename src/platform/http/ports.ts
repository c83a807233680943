// Whether a program could listen somewhere.
import { createServer } from 'node:net'
import { type ListenAddress, listenAddress } from '../../dns/listen-address.ts'

/** Rejects as `listen` does where another program listens; port 0 is always free. */
export async function tryToListen(addresses: readonly (ListenAddress | string)[]): Promise<void> {
  const parsed = addresses.map((address) => (typeof address === 'string' ? listenAddress(address) : address))
  await Promise.all(parsed.filter(({ port }) => port > 0).map(tryOne))
}

function tryOne(address: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen({ ...address, ipv6Only: address.host.includes(':') }, () => server.close(() => resolve()))
  })
}
