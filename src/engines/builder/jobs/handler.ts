// The build job: builds a deployment unless it was canceled, and records the result.
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { JobKinds } from '../../../jobs/kinds.ts'
import { type Handler, type JobRun, Postponed, RunLost } from '../../../jobs/worker.ts'
import { StoreUnavailable } from '../../../platform/artifacts/artifacts.ts'
import { type Database, refusedQuota } from '../../../platform/database/database.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import { removeTree } from '../../../platform/files/remove-tree.ts'
import { secretsOf } from '../../../platform/git/git-remote.ts'
import { inSpan } from '../../../platform/observe/tracing.ts'
import type { Vault } from '../../../platform/secrets/secrets.ts'
import { SandboxLost } from '../../../sandbox/sandbox.ts'
import {
  type Build,
  type BuildReport,
  describeStart,
  exceededMinutes,
  findBuild,
  finishDeployment,
  type Outcome,
  openVariables,
  setCommit,
  setCommitMessage,
  setDetected,
  startBuild,
  supersedeBy,
  suspended,
} from '../../../services/deployments/index.ts'
import { openAccess } from '../../../services/projects/index.ts'
import { quotaFault } from '../../../services/quotas/index.ts'
import { viewDetected } from '../detection/report.ts'
import { explain } from '../explain/explain.ts'
import { BuildFailure, CommandKilled, HostUnreachable, reasonOf } from '../explain/failure.ts'
import { type BuildLog, createBuildLog } from '../explain/log.ts'
import { type MissingResource, maxWaitMs, missingHost, missingResources } from '../explain/missing-resources.ts'
import type { Detected } from '../project/types.ts'
import { DiskFull } from '../run/disk.ts'
import { NoRunner, proveServer, type ServerProofs } from '../run/proof.ts'
import type { BuildTools } from '../run/task.ts'
import { resolveCommit } from '../source/source.ts'
import { buildDirectory, runBuild } from './build.ts'
import { type BuildResult, createBuildMetrics } from './metrics.ts'

// A build is retried once after an internal error. The queue decides about retries after a lost worker or sandbox.
const retryDelaysMs = [1_000] as const

// Delays while the platform can't run a build: half of the time it has already waited, within these limits.
const delayMs = { least: 5_000, most: 300_000 }
export type BuilderDeps = BuildTools & {
  db: Database
  vault: Vault
  notifications: Notifications
  servers: ServerProofs
  log: Logger
  /** Default: its own registry. */
  registry?: Registry
}

export function createBuildHandler(deps: BuilderDeps): Handler<'build'> {
  const { db, config, urls, vault, notifications, repositories, artifacts, caches, disk } = deps
  const metrics = createBuildMetrics(deps.registry)
  const finish = (id: string, outcome: Outcome, guard: JobRun['requireHeld']) =>
    finishDeployment(db, urls, id, { ...outcome, by: 'system', guard })

  /** Treats an exceeded quota as a failure of the build. */
  async function finishReady(
    id: string,
    result: Omit<Extract<Outcome, { to: 'READY' }>, 'to'>,
    guard: JobRun['requireHeld'],
  ) {
    try {
      return await finish(id, { to: 'READY', ...result }, guard)
    } catch (error) {
      const quota = refusedQuota(error)
      if (quota) throw new BuildFailure('quota_exceeded', quotaFault(quota).message)
      throw error
    }
  }

  /**
   * Removes everything that a finished build left, including by dead workers, and its files unless it is READY. Checks
   * the state first, because another worker may be building it.
   */
  async function clear(deploymentId: string): Promise<void> {
    const state = (await findBuild(db, deploymentId))?.state
    if (state === 'BUILDING') return
    await removeTree(buildDirectory(config, deploymentId))
    if (state !== 'READY') await artifacts.remove(deploymentId)
  }

  const logOf = (id: string, secrets: string[] = []) =>
    createBuildLog(db, id, { secrets, hostDirectory: config.dataDir })

  async function logLine(id: string, text: string): Promise<void> {
    const log = logOf(id)
    log.step('queue')
    log.system(text)
    await log.close()
  }

  /** Postpones the build until the missing resource is available, or fails it after too long. */
  async function postpone(
    { field, waiting, why, code, message, maxWaitMs: longest = maxWaitMs }: MissingResource,
    build: Build,
    payload: JobKinds['build'],
    requireHeld: JobRun['requireHeld'],
  ): Promise<void> {
    const since = payload[field]
    const waitedMs = since === undefined ? 0 : Date.now() - Date.parse(since)
    if (waitedMs < longest) {
      if (since === undefined) await logLine(build.id, waiting)
      const delay = Math.round(Math.min(delayMs.most, Math.max(delayMs.least, waitedMs / 2)))
      const next = { deploymentId: build.id, [field]: since ?? new Date().toISOString() }
      throw new Postponed(why, { payload: next, delayMs: delay })
    }
    await requireHeld(db)
    await logLine(build.id, message)
    // Resets the start, so that no build minutes are counted.
    await startBuild(db, build)
    await finish(build.id, { to: 'ERROR', code, message }, requireHeld)
    await clear(build.id)
  }

  /** What a build needs to start and the platform lacks. */
  async function findMissingResource({ id }: Build): Promise<MissingResource | null> {
    if (!(await disk.hasRoom(caches.makeRoom))) return missingResources.disk
    const reason = await artifacts.readiness()
    if (reason !== null) deps.log.warn({ deploymentId: id, reason }, 'a build waits for the artifact store')
    return reason === null ? null : missingResources.store
  }

  /** Otherwise builds queued before the minutes were used up could still run for hours. */
  async function checkMinutes({ accountId }: Build): Promise<void> {
    const exceeded = await exceededMinutes(db, accountId)
    if (!exceeded) return
    throw new BuildFailure('quota_exceeded', quotaFault({ limit: 'buildMinutesPerMonth', ...exceeded }).message)
  }

  async function build(
    build: Build,
    waited: string | null,
    { signal, requireHeld, withoutSlot = (wait) => wait() }: Pick<JobRun, 'signal' | 'requireHeld' | 'withoutSlot'>,
  ): Promise<BuildResult> {
    const [variables, access] = await Promise.all([
      openVariables(db, vault, build),
      openAccess(db, vault, build.projectId),
    ])
    const log = logOf(build.id, [...Object.values(variables), ...secretsOf(access)])
    let result: BuildResult = 'ready'
    const fail = async (error: BuildFailure) => {
      result = 'failed'
      await log.close()
      const failure = await explain(db, build.id, error)
      log.system(failure.message)
      await log.close()
      await finish(build.id, { to: 'ERROR', ...failure, ...reportOf(log) }, requireHeld)
    }
    const isFailure = (error: unknown): error is BuildFailure => error instanceof BuildFailure && !signal.aborted
    try {
      if (waited !== null) {
        log.step('queue')
        log.system(waited)
        log.step('clone')
      }
      await checkMinutes(build)
      if (build.commit === '' && !build.upload) {
        const { found, defaultBranch } = await resolveCommit(repositories, build, access)
        build.commit = found
        if (build.ref === 'HEAD' && defaultBranch !== null) build.ref = defaultBranch
        await setCommit(db, urls, build)
      }
      const onCloned = async (message: string) => {
        await setCommitMessage(db, build.id, message)
        await supersedeBy(db, urls, build)
      }
      const onDetected = (found: Detected) => setDetected(db, build.id, viewDetected(found))
      const attempts = buildDirectory(config, build.id)
      const callbacks = { requireHeld: () => requireHeld(db), onCloned, onDetected }
      const options = { build, variables, access, attempts, log, signal, ...callbacks }
      await runBuild(deps, options, async ({ server, bytes, files }) => {
        // The server writes to the same log, which can only have one writer at a time.
        await log.close()
        const made = { storedBytes: bytes, files, ...reportOf(log) }
        const ready = async () => (await finishReady(build.id, made, requireHeld)) !== null
        try {
          // Waiting for a server can take a minute, so `beside` frees the slot meanwhile.
          const prove = () => proveServer(deps.servers, build.id, signal, ready)
          if (!(await (server ? withoutSlot(prove) : ready()))) result = 'canceled'
        } catch (error) {
          if (!isFailure(error)) throw error
          // Reports the failure now, because saving the cache comes next.
          await fail(error)
        }
      })
    } catch (error) {
      if (error instanceof CommandKilled) log.system(error.message)
      if (!isFailure(error)) throw error
      await fail(error)
    } finally {
      await log.close()
    }
    await clear(build.id)
    return result
  }

  return {
    concurrency: config.build.concurrency,
    retryDelaysMs,
    async run(payload, { attempt, signal, requireHeld, withoutSlot }) {
      const { deploymentId } = payload
      const found = await findBuild(db, deploymentId)
      // Canceled, deleted, or finished by a worker that died before completing the job.
      if (found?.state !== 'BUILDING') return removeTree(buildDirectory(config, deploymentId))
      const canceled = new AbortController()
      const off = notifications.on('event', ({ type, subject }) => {
        const ended = type === 'deployment.canceled' && subject === deploymentId
        if (ended || (type === 'project.deleted' && subject === found.projectId)) canceled.abort()
      })
      // The event may have been missed while disconnected.
      const offBack = notifications.on('reconnected', async () => {
        const current = await findBuild(db, deploymentId).catch(() => undefined)
        if (current === null || (current && current.state !== 'BUILDING')) canceled.abort()
      })
      try {
        // It may have been canceled before we listened.
        const [current, lack] = await Promise.all([findBuild(db, deploymentId), findMissingResource(found)])
        if (current?.state !== 'BUILDING') return await clear(deploymentId)
        // Created while its account was being suspended, so the suspension missed it.
        if (current.suspended) {
          await finish(deploymentId, { to: 'CANCELED', failure: suspended }, requireHeld)
          return await clear(deploymentId)
        }
        if (lack) return await postpone(lack, found, payload, requireHeld)
        if (!(await startBuild(db, found))) return await clear(deploymentId)
        const waitedMs = Date.now() - found.createdAt.getTime()
        const waited = attempt === 1 ? describeStart(waitedMs) : null
        const end = metrics.start(waitedMs)
        let result: BuildResult = 'broken'
        try {
          const either = AbortSignal.any([signal, canceled.signal])
          const held = { signal: either, requireHeld, ...(withoutSlot && { withoutSlot }) }
          result = await inSpan('build', spanOf(found), () => build(found, waited, held))
        } finally {
          end(canceled.signal.aborted ? 'canceled' : result)
        }
      } catch (error) {
        if (canceled.signal.aborted) return await clear(deploymentId)
        if (signal.aborted) throw error
        if (error instanceof DiskFull) return await postpone(missingResources.disk, found, payload, requireHeld)
        if (error instanceof HostUnreachable) {
          return await postpone(missingHost(error.host), found, payload, requireHeld)
        }
        if (error instanceof NoRunner) return await postpone(missingResources.runner, found, payload, requireHeld)
        if (error instanceof SandboxLost) {
          await logLine(deploymentId, `The build was lost: ${error.message}. We will retry it.`)
          throw new RunLost(error.message)
        }
        if (!(error instanceof StoreUnavailable)) throw error
        deps.log.warn({ err: error, deploymentId }, 'a build could not be stored and is put back')
        await postpone(missingResources.store, found, payload, requireHeld)
      } finally {
        off()
        offBack()
      }
    },
    async giveUp({ deploymentId }, error, requireHeld) {
      await finish(deploymentId, { to: 'ERROR', ...reasonOf(error) }, requireHeld)
      // The daily sweep removes what remains.
      await clear(deploymentId).catch(() => {})
    },
  }
}

const reportOf = (log: BuildLog): BuildReport => ({ steps: log.steps(), warnings: log.warnings() })

function spanOf({ id, projectId, accountId, production }: Build) {
  const attributes = {
    'berth.deployment.id': id,
    'berth.project.id': projectId,
    'berth.account.id': accountId,
    'berth.deployment.production': production,
  }
  return { attributes }
}
