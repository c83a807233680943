// What a platform that has nothing to do must not have: processes of its own, and directories of work that is over.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { below, marked, type Process } from './host.ts'

/** Directories outside the data directory that sandboxes make; they are found by the commands of running ones. */
export class Traces {
  readonly #seen = new Set<string>()

  look(pids: (number | undefined)[]): void {
    for (const pid of pids) {
      for (const { command } of pid === undefined ? [] : below(pid)) {
        for (const [path] of command.matchAll(/\/run\/berth-\w{6}\b|\/sys\/fs\/cgroup\/[\w./-]*berth-[\w-]+/g))
          this.#seen.add(path)
      }
    }
  }

  get left(): string[] {
    return [...this.#seen].filter((path) => existsSync(path))
  }
}

export function orphans(mark: string): string[] {
  const own = new Set(below(process.pid).map(({ pid }) => pid))
  // The helper that looks is not one of them.
  return marked(mark).map(
    ({ pid, command }: Process) => `${pid}${own.has(pid) ? ' (below this process)' : ''} ${command.slice(0, 150)}`,
  )
}

const entries = (path: string) => (existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : [])

export type Kept = { deployments: Set<string>; projects: Set<string> }

/** Paths below the scratch directory that belong to nothing any more. */
export function leakedDirectories(directory: string, { deployments, projects }: Kept): string[] {
  const data = join(directory, 'data')
  const last = (path: string) => path.slice(path.lastIndexOf('/') + 1)
  const unknown = (of: Set<string>) => (path: string) => !of.has(last(path).replace(/\.json$/, ''))
  const partial = (readdirSync(join(data, 'artifacts'), { recursive: true }) as string[])
    .filter((name) => name.endsWith('.new'))
    .map((name) => join(data, 'artifacts', name))
  return [
    ...entries(join(data, 'builds')).map((path) => [path, ...entries(path)].join(' with ')),
    ...entries(join(data, 'cache')).filter(unknown(projects)),
    ...entries(join(data, 'artifacts/manifests')).filter(unknown(deployments)),
    ...entries(join(data, 'artifacts/servers')).filter(unknown(deployments)),
    ...partial,
    // npm keeps a cache of its own there.
    ...entries(join(directory, 'tmp')).filter((path) => last(path) !== 'node-compile-cache'),
  ]
}
