// The edge role: serves deployments by host name over HTTP and HTTPS.
import { createEdge, openSwitches } from '../engines/edge/index.ts'
import { openBalancer, type Runner } from '../engines/servers/index.ts'
import { ownNames } from '../platform/http/own-names.ts'
import { readYielded } from '../services/projects/index.ts'
import type { Closing } from './opening/closing.ts'
import type { Shared } from './opening/shared.ts'

/** `runner` is this process's own, whose instances need no network. */
export async function openEdge(shared: Shared, node: string, runner: Runner | null, closing: Closing): Promise<void> {
  const servers = await openBalancer(shared, node, runner)
  // Each worker process of the node is an edge of its own.
  const self = { id: `${node}/${process.pid}`, name: shared.config.nodeName }
  const switches = await openSwitches({ ...shared, edge: self })
  closing.add(() => switches.close())
  const edge = createEdge({ ...shared, servers, onShown: switches.shown })
  await edge.listen()
  closing.add(() => edge.close())
  const silent = 'The edge has not answered a request of its own yet.'
  shared.health.add('edge', async () => ((await edge.answers()) ? null : silent), ['edge'])
  void shared.migrated
    .then(() => warnOfYielded(shared))
    .catch((err) => shared.log.warn({ err }, 'the hosts that projects gave up could not be read'))
}

/** After a change of BASE_URL or NAMESERVERS, a project may have a host that now belongs to the platform. */
async function warnOfYielded({ config, db, log }: Shared): Promise<void> {
  const { domain, hosts } = ownNames(config)
  for (const { host, projectId } of await readYielded(db, domain, hosts)) {
    log.warn({ host, projectId }, 'a host of a project is a name of the platform, so the project is not served there')
  }
}
