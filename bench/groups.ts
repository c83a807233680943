// All groups of benchmarks by name, loaded when they run.
import type { Group } from './group.ts'

export const groups: Record<string, () => Promise<{ group: Group }>> = {
  api: () => import('./api/run.ts'),
  build: () => import('./build/run.ts'),
  deploy: () => import('./deploy/run.ts'),
  dns: () => import('./dns/run.ts'),
  edge: () => import('./edge/run.ts'),
  events: () => import('./events/run.ts'),
  fairness: () => import('./fairness/run.ts'),
  hostile: () => import('./hostile/run.ts'),
  lists: () => import('./lists/run.ts'),
  roles: () => import('./roles/run.ts'),
  servers: () => import('./servers/run.ts'),
  tls: () => import('./tls/run.ts'),
}
