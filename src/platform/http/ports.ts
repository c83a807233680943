// Checks whether a program could listen on an address.
import { createServer } from 'node:net'
import { type ListenAddress, listenAddress } from '../../dns/listen-address.ts'

/** Rejects like `listen` if another program listens there. Port 0 is always free. */
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
