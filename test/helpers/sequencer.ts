// Starts the longest files first: one of them at the end would run alone, while the other processors are idle.
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Those that take more than eight seconds, the longest first. A fresh checkout knows nothing of earlier runs. */
const longest = [
  'engines/servers/proof',
  'roles/start',
  'hostile/takeover/orders',
  'hostile/builds/outputs',
  'engines/servers/lifetime',
  'engines/builder/builds',
  'commands/backup',
  'engines/builder/worker-loss',
  'engines/servers/barred',
  'roles/draining',
  'services/large-zones',
  'embedded-postgres/embedded-postgres',
  'hostile/operations',
  'engines/servers/takeover',
  'services/backups/backups',
  'engines/nameserver/transfer/secondaries',
  'api/http/shares',
  'prove/prove',
]

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId, project }: TestSpecification) => {
      const place = longest.findIndex((name) => relative(project.config.root, moduleId) === `test/${name}.test.ts`)
      return place < 0 ? longest.length : place
    }
    return (await super.sort(files)).sort((a, b) => placeOf(a) - placeOf(b))
  }
}
