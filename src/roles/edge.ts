// The edge role: serves deployments by host name over HTTP and HTTPS.
import { createEdge } from '../engines/edge/index.ts'
import type { Closing } from './closing.ts'
import type { Hosting } from './hosting.ts'
import type { Shared } from './shared.ts'

export async function openEdge(shared: Shared, { servers }: Hosting, closing: Closing): Promise<void> {
  const edge = createEdge({ ...shared, servers })
  await edge.listen()
  closing.add(() => edge.close())
}
