// The build job: finds the deployment, builds it under the eyes of whoever may cancel it, and records how it ended.
import type { Logger } from 'pino'
import type { Database } from '../../db.ts'
import { type Handler, LostError } from '../../jobs/worker.ts'
import type { Notifications } from '../../notifications.ts'
import type { Vault } from '../../secrets.ts'
import { type Build, findBuild, openVariables, setCommit } from '../../services/builds.ts'
import { finishDeployment, type Outcome } from '../../services/deployment-states.ts'
import { type BuildTools, runBuild } from './build.ts'
import { BuildFailure } from './failure.ts'
import { createBuildLog } from './log.ts'
import { proveServer, type ServerProofs } from './proof.ts'
import { resolveCommit } from './source.ts'

// A worker that dies in the middle is replaced once; an error of our own gets the same second chance.
const retryDelaysMs = [1_000] as const

export type BuilderDeps = BuildTools & {
  db: Database
  vault: Vault
  notifications: Notifications
  servers: ServerProofs
  log: Logger
}

export function createBuildHandler(deps: BuilderDeps): Handler<'build'> {
  const { db, config, vault, notifications, repositories, artifacts } = deps
  const finish = (id: string, outcome: Outcome) => finishDeployment(db, config, id, 'system', outcome)

  /** What was published of a deployment that ended otherwise. Asked of the database: another worker may have it READY. */
  async function clear(deploymentId: string): Promise<void> {
    const state = (await findBuild(db, deploymentId))?.state
    if (state !== 'READY' && state !== 'BUILDING') await artifacts.remove(deploymentId)
  }

  async function build(build: Build, signal: AbortSignal): Promise<void> {
    const variables = await openVariables(db, vault, build)
    const log = createBuildLog(db, build.id, Object.values(variables))
    try {
      if (build.commit === '') {
        build.commit = await resolveCommit(repositories, build.repo, build.ref, signal)
        await setCommit(db, build.id, build.commit)
      }
      await runBuild(deps, build, variables, log, signal, async (server) => {
        // The server writes to the same log, and a log has one writer at a time.
        await log.close()
        const ready = async () => (await finish(build.id, { to: 'READY' })) !== null
        if (!(server ? await proveServer(deps.servers, build.id, signal, ready) : await ready())) await clear(build.id)
      })
    } catch (error) {
      if (!(error instanceof BuildFailure) || signal.aborted) throw error
      // What a server printed is in the log already.
      log.system(error.message.split('\n', 1)[0]!)
      await log.close()
      await finish(build.id, { to: 'ERROR', code: error.code, message: error.message })
      await clear(build.id)
    } finally {
      await log.close()
    }
  }

  return {
    concurrency: config.build.concurrency,
    retryDelaysMs,
    async run({ deploymentId }, { signal }) {
      const found = await findBuild(db, deploymentId)
      // Canceled, deleted, or finished by a run whose worker died before it could say so.
      if (found?.state !== 'BUILDING') return
      const canceled = new AbortController()
      const off = notifications.on('event', ({ type, subject }) => {
        const ended = type === 'deployment.canceled' && subject === deploymentId
        if (ended || (type === 'project.deleted' && subject === found.projectId)) canceled.abort()
      })
      try {
        // It may have been canceled between the reading and the listening.
        if ((await findBuild(db, deploymentId))?.state !== 'BUILDING') return
        await build(found, AbortSignal.any([signal, canceled.signal]))
      } catch (error) {
        if (!canceled.signal.aborted) throw error
        await clear(deploymentId)
      } finally {
        off()
      }
    },
    async giveUp({ deploymentId }, error) {
      const lost = error instanceof LostError
      const code = lost ? 'worker_lost' : 'internal_error'
      const message = lost ? 'The worker that built it was lost, twice.' : 'The build broke on our side.'
      await finish(deploymentId, { to: 'ERROR', code, message })
    },
  }
}
