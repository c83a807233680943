// A platform under attack by builds, with files outside that no build may read, change or remove.
import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { type Platform, sandboxRequired, startPlatform } from '../../engines/builder/host.ts'
import type { Link } from '../../helpers/repository.ts'
import { sharedSandbox } from '../../helpers/sandbox.ts'
import { plantCanary } from './canary.ts'

/** Without a sandbox there is no protection to attack; where peers are required its absence is a failure. */
export const isProtected = (await sharedSandbox()).driver === 'bubblewrap' || sandboxRequired

export type Result = {
  id: string
  state: string
  error: { code: string; message: string } | null
  log: string
  files: string[]
}

export type Attack = {
  platform: Platform
  /** A directory of root's with a secret, closed to others, as the data of a server is. */
  canary: string
  secret: string
  /** Builds a project with this script as its build command; `$CANARY` is the directory of the canary. */
  build(name: string, script: string, more?: { files?: Record<string, string | Link>; body?: object }): Promise<Result>
  /** Deploys a project that exists already. */
  deploy(name: string, body?: object): Promise<Result>
  /** Nobody has read, changed, added or removed anything there, and nothing of it was told or published. */
  expectUntouched(...results: Result[]): Promise<void>
  stop(): Promise<void>
}

export async function startAttack(environment: Record<string, string> = {}): Promise<Attack> {
  const platform = await startPlatform({ BUILD_TIMEOUT_MS: '60000', ...environment })
  const { directory: canary, secret, expectUntouched, remove } = await plantCanary()
  const everything: Result[] = []

  async function deploy(name: string, body: object = {}): Promise<Result> {
    const id = await platform.deploy(name, body)
    const { state, error } = await platform.settled(id)
    const manifest = await platform.artifacts.read(id)
    const result = { id, state, error, log: await platform.log(id), files: Object.keys(manifest?.files ?? {}) }
    everything.push(result)
    return result
  }

  return {
    platform,
    canary,
    secret,
    deploy,
    async build(name, script, { files = {}, body = {} } = {}) {
      // As a setting, which spares every one of these builds the start of npm; and none of them needs a network.
      const settings = { buildCommand: `export CANARY='${canary}'; ${script}`, buildNetwork: 'none' }
      await platform.project(name, { 'readme.txt': '', ...files }, { framework: 'vite', settings, ...body })
      return deploy(name)
    },
    async expectUntouched(...results) {
      await expectUntouched()
      for (const { id, log } of results.length > 0 ? results : everything) {
        expect(log).not.toContain(secret)
        for (const stored of Object.values((await platform.artifacts.read(id))?.files ?? {})) {
          expect(await readFile(platform.artifacts.pathOf(stored.hash), 'latin1')).not.toContain(secret)
        }
      }
    },
    async stop() {
      await platform.stop()
      await remove()
    },
  }
}
