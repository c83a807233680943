// An API, a repository host over HTTP and a worker that builds, for the tests of the builder.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildHandlers, openDisk } from '../../../src/engines/builder/index.ts'
import { createProofs, startRunner } from '../../../src/engines/servers/index.ts'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import type { LocalArtifacts } from '../../../src/platform/artifacts/local-artifacts.ts'
import { openArtifacts } from '../../../src/platform/storage/open-artifacts.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { type GitHost, startGitHost } from '../../helpers/git-host.ts'
import { createRepository, type Link } from '../../helpers/repository.ts'
import { sharedPackageRegistry, sharedPrograms, sharedSandbox } from '../../helpers/sandbox.ts'

export type Platform = {
  api: TestApi
  artifacts: LocalArtifacts
  host: GitHost
  /** A project with a repository of these files. */
  project(name: string, files: Record<string, string | Link>, body?: object): Promise<void>
  /** Where the repositories are, for those that are made otherwise. */
  repositories: string
  deploy(name: string, body?: object): Promise<string>
  /** The deployment when it has left BUILDING. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came.
  settled(id: string): Promise<any>
  log(id: string): Promise<string>
  /** What the deployment serves at a path. */
  file(id: string, path: string): Promise<string | null>
  stop(): Promise<void>
}

export async function startPlatform(
  environment: Record<string, string> = {},
  withWorker = true,
  options: Parameters<typeof startApi>[1] = {},
): Promise<Platform> {
  const root = await mkdtemp(join(tmpdir(), 'berth-git-'))
  const host = await startGitHost(root)
  const settings = { GIT_URL_TEMPLATE: host.template, BUILD_TIMEOUT_MS: '60000', ...environment }
  const api = await startApi(settings, options)
  // Tests that look into its folders use the directory.
  const artifacts = openArtifacts(api.config) as LocalArtifacts
  const sandbox = await sharedSandbox()
  const { db, notifications, log } = api.deps
  const packageRegistry = sharedPackageRegistry()
  const programs = sharedPrograms()
  const servers = createProofs(api.deps)
  const draining = new AbortController().signal
  const runnerDeps = { ...api.deps, artifacts, sandbox, packageRegistry, programs, draining }
  const runner = withWorker ? await startRunner(runnerDeps, { id: 'builder', address: null }) : null
  const disk = openDisk({ directory: api.config.dataDir, reserveMb: api.config.diskReserveMb, log })
  const handlers = buildHandlers({ ...api.deps, artifacts, sandbox, packageRegistry, programs, servers, disk })
  const worker: Worker | null = withWorker ? startWorker(db, notifications, log, handlers) : null
  return {
    api,
    artifacts,
    host,
    repositories: root,
    async project(name, files, body = {}) {
      await createRepository(root, `acme/${name}`, files)
      const made = await api.call('POST', '/projects', { body: { name, repo: `acme/${name}`, ...body } })
      if (made.status !== 201) throw new Error(made.text)
    },
    async deploy(name, body = {}) {
      const made = await api.call('POST', '/deployments', { body: { project: name, ...body } })
      if (made.status !== 201) throw new Error(made.text)
      return made.body.id
    },
    async settled(id) {
      for (;;) {
        const { body } = await api.call('GET', `/deployments/${id}?wait=30`)
        if (body.state !== 'BUILDING') return body
      }
    },
    async log(id) {
      const { body } = await api.call('GET', `/deployments/${id}/logs?limit=1000`)
      return body.lines.map((line: { step: string; text: string }) => `${line.step}: ${line.text}`).join('\n')
    },
    async file(id, path) {
      const stored = (await artifacts.read(id))?.files[path]
      return stored ? (await artifacts.load(stored.hash)).toString() : null
    },
    async stop() {
      await worker?.stop()
      await runner?.close()
      artifacts.close()
      await api.stop()
      host.close()
      await rm(root, { recursive: true, force: true })
    },
  }
}

/** Whether builds run protected here; without it their tests say nothing. */
export const sandboxRequired = process.env.BERTH_REQUIRE_PEERS === '1'

/** A package.json with only scripts. */
export function scripts(commands: Record<string, string>): string {
  return JSON.stringify({ name: 'site', private: true, scripts: commands })
}
