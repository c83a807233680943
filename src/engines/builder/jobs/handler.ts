// The build job: finds the deployment, builds it unless it is canceled, and records the result.
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { JobKinds } from '../../../jobs/kinds.ts'
import { type Handler, type Held, Postponed, RunLost } from '../../../jobs/worker.ts'
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
  type Told,
} from '../../../services/deployments/index.ts'
import { openAccess } from '../../../services/projects/index.ts'
import { quotaFault } from '../../../services/quotas/index.ts'
import { viewDetected } from '../detection/telling.ts'
import { explain } from '../explain/explain.ts'
import { BuildFailure, CommandKilled, HostUnreachable, reasonOf } from '../explain/failure.ts'
import { type Lack, lackOfHost, lacks, maxWaitMs } from '../explain/lacks.ts'
import { type BuildLog, createBuildLog } from '../explain/log.ts'
import type { Detected } from '../project/types.ts'
import { DiskFull } from '../run/disk.ts'
import { NoRunner, proveServer, type ServerProofs } from '../run/proof.ts'
import type { BuildTools } from '../run/task.ts'
import { resolveCommit } from '../source/source.ts'
import { buildDirectory, runBuild } from './build.ts'
import { type BuildResult, createBuildMetrics } from './metrics.ts'

// A build is retried once after an internal error. How often it is after its worker or sandbox was lost is the queue's rule.
const retryDelaysMs = [1_000] as const

// A build that the platform cannot run now is put back this often: each time half as long again, within these bounds.
const delayMs = { least: 5_000, most: 300_000 }
export type BuilderDeps = BuildTools & {
  db: Database
  vault: Vault
  notifications: Notifications
  servers: ServerProofs
  log: Logger
  /** Default: a registry of its own. */
  registry?: Registry
}

export function createBuildHandler(deps: BuilderDeps): Handler<'build'> {
  const { db, config, urls, vault, notifications, repositories, artifacts, caches, disk } = deps
  const metrics = createBuildMetrics(deps.registry)
  const finish = (id: string, outcome: Outcome, guard: Held['requireHeld']) =>
    finishDeployment(db, urls, id, { ...outcome, by: 'system', guard })

  /** A site that exceeds the quota of its account fails like a build. */
  async function finishReady(
    id: string,
    made: Omit<Extract<Outcome, { to: 'READY' }>, 'to'>,
    guard: Held['requireHeld'],
  ) {
    try {
      return await finish(id, { to: 'READY', ...made }, guard)
    } catch (error) {
      const quota = refusedQuota(error)
      if (quota) throw new BuildFailure('quota_exceeded', quotaFault(quota).message)
      throw error
    }
  }

  /**
   * Removes what a build that is over has left, also by workers that died, and its files unless it is READY. Reads the
   * state first: another worker may have it.
   */
  async function clear(deploymentId: string): Promise<void> {
    const state = (await findBuild(db, deploymentId))?.state
    if (state === 'BUILDING') return
    await removeTree(buildDirectory(config, deploymentId))
    if (state !== 'READY') await artifacts.remove(deploymentId)
  }

  const logOf = (id: string, secrets: string[] = []) =>
    createBuildLog(db, id, { secrets, hostDirectory: config.dataDir })

  async function say(id: string, text: string): Promise<void> {
    const log = logOf(id)
    log.step('queue')
    log.system(text)
    await log.close()
  }

  /** Puts the build back until there is what it lacks, or ends it when that has taken too long. */
  async function putBack(
    { field, waiting, why, code, message, maxWaitMs: longest = maxWaitMs }: Lack,
    build: Build,
    payload: JobKinds['build'],
    requireHeld: Held['requireHeld'],
  ): Promise<void> {
    const since = payload[field]
    const waitedMs = since === undefined ? 0 : Date.now() - Date.parse(since)
    if (waitedMs < longest) {
      if (since === undefined) await say(build.id, waiting)
      const delay = Math.round(Math.min(delayMs.most, Math.max(delayMs.least, waitedMs / 2)))
      const next = { deploymentId: build.id, [field]: since ?? new Date().toISOString() }
      throw new Postponed(why, { payload: next, delayMs: delay })
    }
    await requireHeld(db)
    await say(build.id, message)
    // No minute of the attempts counts.
    await startBuild(db, build)
    await finish(build.id, { to: 'ERROR', code, message }, requireHeld)
    await clear(build.id)
  }

  /** What is missing for a build to begin. */
  async function lackOf({ id }: Build): Promise<Lack | null> {
    if (!(await disk.hasRoom(caches.makeRoom))) return lacks.disk
    const reason = await artifacts.readiness()
    if (reason !== null) deps.log.warn({ deploymentId: id, reason }, 'a build waits for the artifact store')
    return reason === null ? null : lacks.store
  }

  /** Builds that were queued before the minutes were used up would run on for hours. */
  async function checkMinutes({ accountId }: Build): Promise<void> {
    const exceeded = await exceededMinutes(db, accountId)
    if (!exceeded) return
    throw new BuildFailure('quota_exceeded', quotaFault({ limit: 'buildMinutesPerMonth', ...exceeded }).message)
  }

  async function build(
    build: Build,
    waited: string | null,
    { signal, requireHeld, beside = (wait) => wait() }: Pick<Held, 'signal' | 'requireHeld' | 'beside'>,
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
      await finish(build.id, { to: 'ERROR', ...failure, ...toldBy(log) }, requireHeld)
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
      const cloned = async (message: string) => {
        await setCommitMessage(db, build.id, message)
        await supersedeBy(db, urls, build)
      }
      const detected = (found: Detected) => setDetected(db, build.id, viewDetected(found))
      const attempts = buildDirectory(config, build.id)
      const hears = { requireHeld: () => requireHeld(db), cloned, detected }
      const given = { build, variables, access, attempts, log, signal, ...hears }
      await runBuild(deps, given, async ({ server, bytes, files }) => {
        // The server writes to the same log, and a log has one writer at a time.
        await log.close()
        const made = { storedBytes: bytes, files, ...toldBy(log) }
        const ready = async () => (await finishReady(build.id, made, requireHeld)) !== null
        try {
          // A server that does not listen is waited for up to a minute, on whichever machine.
          const prove = () => proveServer(deps.servers, build.id, signal, ready)
          if (!(await (server ? beside(prove) : ready()))) result = 'canceled'
        } catch (error) {
          if (!isFailure(error)) throw error
          // At once: what the next build can use is still to be saved.
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
    async run(payload, { attempt, signal, requireHeld, beside }) {
      const { deploymentId } = payload
      const found = await findBuild(db, deploymentId)
      // Canceled, deleted, or finished by a worker that died before it could complete the job.
      if (found?.state !== 'BUILDING') return removeTree(buildDirectory(config, deploymentId))
      const canceled = new AbortController()
      const off = notifications.on('event', ({ type, subject }) => {
        const ended = type === 'deployment.canceled' && subject === deploymentId
        if (ended || (type === 'project.deleted' && subject === found.projectId)) canceled.abort()
      })
      // The event may have been missed while nobody listened.
      const offBack = notifications.on('reconnected', async () => {
        const current = await findBuild(db, deploymentId).catch(() => undefined)
        if (current === null || (current && current.state !== 'BUILDING')) canceled.abort()
      })
      try {
        // It may have been canceled before the listener was added.
        const [current, lack] = await Promise.all([findBuild(db, deploymentId), lackOf(found)])
        if (current?.state !== 'BUILDING') return await clear(deploymentId)
        // Made while its account was being suspended: the suspension did not see it.
        if (current.suspended) {
          await finish(deploymentId, { to: 'CANCELED', failure: suspended }, requireHeld)
          return await clear(deploymentId)
        }
        if (lack) return await putBack(lack, found, payload, requireHeld)
        if (!(await startBuild(db, found))) return await clear(deploymentId)
        const waitedMs = Date.now() - found.createdAt.getTime()
        const waited = attempt === 1 ? describeStart(waitedMs) : null
        const end = metrics.start(waitedMs)
        let result: BuildResult = 'broken'
        try {
          const either = AbortSignal.any([signal, canceled.signal])
          const held = { signal: either, requireHeld, ...(beside && { beside }) }
          result = await inSpan('build', spanOf(found), () => build(found, waited, held))
        } finally {
          end(canceled.signal.aborted ? 'canceled' : result)
        }
      } catch (error) {
        if (canceled.signal.aborted) return await clear(deploymentId)
        if (signal.aborted) throw error
        if (error instanceof DiskFull) return await putBack(lacks.disk, found, payload, requireHeld)
        if (error instanceof HostUnreachable) {
          return await putBack(lackOfHost(error.host), found, payload, requireHeld)
        }
        if (error instanceof NoRunner) return await putBack(lacks.runner, found, payload, requireHeld)
        if (error instanceof SandboxLost) {
          await say(deploymentId, `The build was lost: ${error.message}. We will retry it.`)
          throw new RunLost(error.message)
        }
        if (!(error instanceof StoreUnavailable)) throw error
        deps.log.warn({ err: error, deploymentId }, 'a build could not be stored and is put back')
        await putBack(lacks.store, found, payload, requireHeld)
      } finally {
        off()
        offBack()
      }
    },
    async giveUp({ deploymentId }, error, requireHeld) {
      await finish(deploymentId, { to: 'ERROR', ...reasonOf(error) }, requireHeld)
      // What cannot be removed now is left to the sweep.
      await clear(deploymentId).catch(() => {})
    },
  }
}

const toldBy = (log: BuildLog): Told => ({ steps: log.steps(), warnings: log.warnings() })

function spanOf({ id, projectId, accountId, production }: Build) {
  const attributes = {
    'berth.deployment.id': id,
    'berth.project.id': projectId,
    'berth.account.id': accountId,
    'berth.deployment.production': production,
  }
  return { attributes }
}
