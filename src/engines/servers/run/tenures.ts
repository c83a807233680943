// What a runner does with each instance that it holds: proves it, keeps it up, runs it on demand, or ends it.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../../../platform/database/database.ts'
import {
  type HeldInstance,
  type InstanceState,
  removeInstance,
  setInstanceState,
} from '../../../services/instances/index.ts'
import { keyOf } from '../instance/dial.ts'
import { ServerUnhealthy } from '../instance/failures.ts'
import type { Lane } from '../proxy/visits.ts'
import type { Proof, Servers } from './servers.ts'
import type { RunState } from './supervisor.ts'

export type Tenures = {
  /** The instances that this node has now: those that are not among them are ended. */
  follow(held: HeldInstance[]): void
  lane(key: string): Lane | null
  count(): number
  onState(key: string, state: RunState, error?: Error): void
}

type Tenure = {
  key: string
  held: HeldInstance
  lane: Lane
  state: InstanceState
  reason: string | null
  /** Held until the deployment is READY. */
  proof: { cancel: AbortController; result: Proof | null } | null
  /** It served production, and is ended when another deployment does. */
  kept: boolean
  ending: boolean
  /** It gets no request any more. */
  over: boolean
  /** The reports so far: of two at once, the first could be written last. */
  told: Promise<void>
}

export type TenuresOptions = { db: Database; servers: Servers; log: Logger; handoverMs?: number }

const defaultHandoverMs = 1_000
const surplus = 'This instance is needed no longer'

export function createTenures({ db, servers, log, handoverMs = defaultHandoverMs }: TenuresOptions): Tenures {
  const tenures = new Map<string, Tenure>()

  function tell(tenure: Tenure, state: InstanceState, reason: string | null = null): void {
    tenure.state = state
    tenure.reason = reason
    // If it fails, `follow` finds that the row says something else.
    tenure.told = tenure.told.then(() => setInstanceState(db, tenure.held, state, reason)).catch(() => {})
  }

  function begin(key: string, held: HeldInstance): Tenure {
    const tenure: Tenure = {
      key,
      held,
      lane: servers.lane(key),
      state: 'starting',
      reason: null,
      proof: null,
      kept: false,
      ending: false,
      over: false,
      told: Promise.resolve(),
    }
    tenures.set(key, tenure)
    return tenure
  }

  function prove(tenure: Tenure): void {
    const proof = { cancel: new AbortController(), result: null as Proof | null }
    tenure.proof = proof
    servers.prove(tenure.key, proof.cancel.signal).then(
      (result) => {
        proof.result = result
        if (result.healthy) tell(tenure, 'healthy')
        else tell(tenure, 'unhealthy', result.reason)
      },
      (error: Error) => {
        if (!proof.cancel.signal.aborted) tell(tenure, 'unavailable', error.message)
      },
    )
  }

  /** The deployment is READY. */
  function release(tenure: Tenure): void {
    const result = tenure.proof?.result
    tenure.proof = null
    if (result?.healthy) void result.release()
  }

  /** It serves production: started, and kept up from now on. */
  function keep(tenure: Tenure): void {
    if (tenure.kept) return
    tenure.kept = true
    servers.keep(tenure.key)
    release(tenure)
    // A failure is told by `onState`, and it is tried again.
    servers.ready(tenure.key).catch(() => {})
  }

  /** It is not wanted: what is under way in it may end, and nothing new comes, because edges are told first. */
  async function leave(tenure: Tenure): Promise<void> {
    if (tenure.ending) return
    const { key, state } = tenure
    tenure.ending = true
    tenure.proof?.cancel.abort()
    if (state === 'healthy') {
      tell(tenure, 'leaving')
      await delay(handoverMs, undefined, { ref: false })
      // Wanted again meanwhile.
      if (!tenure.over && tenure.held.duty !== 'surplus') {
        tenure.ending = false
        return tell(tenure, state)
      }
    }
    // Unless it is to be stopped at once meanwhile.
    if (!tenure.over) {
      tenure.over = true
      await servers.retire(key, surplus)
      if (tenure.held.duty === 'keep' && tenures.get(key) === tenure) return resume(tenure)
    }
    await servers.halt(key)
    tenure.ending = false
    await remove(tenure)
  }

  /** Production came back to it while its last requests ended, for example by a rollback. */
  function resume(tenure: Tenure): void {
    tenure.over = false
    tenure.ending = false
    tenure.kept = false
    // Reported once it is ready.
    tenure.state = 'starting'
    keep(tenure)
    servers.ready(tenure.key).then(
      () => tenure.state === 'starting' && tell(tenure, 'healthy'),
      () => {},
    )
  }

  /** Another deployment serves production. If visitors still ask for it at its own address, it runs on demand. */
  async function retire(tenure: Tenure): Promise<void> {
    if (tenure.ending) return
    const { key } = tenure
    tenure.ending = true
    tenure.kept = false
    await servers.retire(key)
    tenure.ending = false
    const isWanted = servers.isWanted(key) || tenure.held.duty === 'keep'
    if (!isWanted) await remove(tenure)
  }

  /** At once, also while it leaves or is retired. */
  async function halt(tenure: Tenure): Promise<void> {
    tenure.over = true
    tenure.proof?.cancel.abort()
    await servers.halt(tenure.key)
    if (!tenure.ending) await remove(tenure)
  }

  async function remove(tenure: Tenure): Promise<void> {
    tenure.over = true
    await removeInstance(db, tenure.held)
  }

  /** Another node has it, or it is gone. */
  async function lose(tenure: Tenure): Promise<void> {
    tenures.delete(tenure.key)
    tenure.proof?.cancel.abort()
    if (!tenure.over) await servers.retire(tenure.key, surplus)
    await servers.halt(tenure.key)
  }

  function fulfil(tenure: Tenure, isNew: boolean): void {
    const { key, held } = tenure
    if (tenure.over) {
      if (!tenure.ending) attempt(remove(tenure), tenure)
      // It need not finish its last requests first.
      else if (held.duty === 'keep') servers.keep(key)
      return
    }
    if (tenure.state !== held.state && !tenure.ending) tell(tenure, tenure.state, tenure.reason)
    switch (held.duty) {
      case 'prove':
        if (isNew) prove(tenure)
        break
      case 'keep':
        keep(tenure)
        break
      case 'replaced':
      case 'serve':
        if (held.duty === 'replaced' && tenure.kept) {
          attempt(retire(tenure), tenure)
          break
        }
        release(tenure)
        if (isNew) servers.wake(key)
        break
      case 'surplus':
        attempt(leave(tenure), tenure)
        break
      default:
        attempt(halt(tenure), tenure)
    }
  }

  function attempt(work: Promise<void>, { held: { deploymentId } }: Tenure): void {
    work.catch((err) => log.warn({ err, deploymentId }, 'an instance could not be ended'))
  }

  return {
    follow(rows) {
      const held = new Map(rows.map((row) => [keyOf(row), row]))
      for (const tenure of [...tenures.values()]) if (!held.has(tenure.key)) attempt(lose(tenure), tenure)
      for (const [key, row] of held) {
        const known = tenures.get(key)
        const tenure = known ?? begin(key, row)
        tenure.held = row
        fulfil(tenure, !known)
      }
    },
    count: () => tenures.size,
    lane(key) {
      const tenure = tenures.get(key)
      return tenure && !tenure.over ? tenure.lane : null
    },
    onState(key, state, error) {
      const tenure = tenures.get(key)
      if (!tenure) return
      // Its build is told when it has run for a moment.
      if (tenure.proof && !tenure.proof.result) return
      // It leaves, however it is.
      if (tenure.state === 'leaving' && state !== 'stopped') return
      if (state === 'healthy' || state === 'starting') tell(tenure, state)
      else if (state === 'failed') {
        tell(tenure, error instanceof ServerUnhealthy ? 'unhealthy' : 'unavailable', error!.message)
      } else if (!tenure.kept && !tenure.ending && !tenure.proof) attempt(remove(tenure), tenure)
    },
  }
}
