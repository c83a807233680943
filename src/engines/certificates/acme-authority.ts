// Completes ACME orders: proves every name, finalizes and downloads. Can resume an order of another worker.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import type { Database } from '../../platform/database/database.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import { type Challenge, findOrAddAccount, setAccountUrl } from '../../services/certificates/index.ts'
import {
  type AcmeChallenge,
  type AcmeClient,
  type AcmeOrderState,
  type Authorization,
  createAcmeClient,
} from './acme-client.ts'
import { AcmeProblem } from './acme-problem.ts'
import { createTransport } from './acme-transport.ts'
import type { Authority, Task } from './authority.ts'
import { failureOf, IssueFailure } from './failures.ts'
import { newKey } from './keys.ts'
import { awaitPresence, type ChallengeServers } from './presence.ts'
import { momentWithin, renewalIdOf } from './renewal.ts'

export type AcmeAuthorityOptions = {
  acme: NonNullable<Config['acme']>
  db: Database
  vault: Vault
  log: Logger
  challengeServers: ChallengeServers
}

// Delays between polls of an order unless the authority sends one. The last one repeats.
const pollDelaysMs = [200, 400, 800, 1_500, 3_000, 5_000]
const maxPollMs = 60_000
// After this the authority counts as unreachable, and the order is polled again later.
const decisionTimeoutMs = 5 * 60_000
// RFC 9773: six hours by default (section 4.3.3), or the authority's value within limits (section 4.3.2).
const defaultCheckMs = 6 * 3_600_000
const minCheckMs = 60_000
const maxCheckMs = 24 * 3_600_000

const sameNames = (one: readonly string[], other: readonly string[]) =>
  [...one].sort().join() === [...other].sort().join()

export function createAcmeAuthority({ acme, db, vault, log, challengeServers }: AcmeAuthorityOptions): Authority {
  const transport = createTransport(acme.caFile)
  const directory = acme.directoryUrl
  const accountPlace = placeOf.acmeAccount(directory)

  async function connect(signal: AbortSignal): Promise<AcmeClient> {
    const account = await findOrAddAccount(db, directory, () => vault.seal(newKey(), accountPlace))
    return createAcmeClient({
      directoryUrl: directory,
      email: acme.email,
      eab: acme.eab,
      transport,
      account: {
        url: account.url,
        key: vault.open(account.key, accountPlace).toString(),
        save: (url) => setAccountUrl(db, directory, url),
      },
      signal,
    })
  }

  /** Opens the stored order if it can still succeed, else a new one. */
  async function openOrder(client: AcmeClient, task: Task): Promise<{ order: AcmeOrderState; key: string }> {
    const { order: stored } = task
    if (stored.url && stored.key && stored.directory === directory && sameNames(stored.names, task.names)) {
      const order = await client.readOrder(stored.url).catch((error) => {
        if (error instanceof AcmeProblem && error.status < 500 && error.status !== 429) return null
        throw error
      })
      if (order && order.status !== 'invalid') {
        return { order, key: vault.open(stored.key, placeOf.acmeOrder(stored.subject)).toString() }
      }
    }
    const key = newKey()
    await task.begin(key)
    const old = task.replaces?.directory === directory ? task.replaces : null
    const replaces = old && (await client.hasRenewalInfo()) ? renewalIdOf(old.chain) : null
    const order = await client.newOrder(task.names, replaces)
    await task.setUrl(order.url)
    return { order, key }
  }

  /** Publishes the challenges of unproved names, and asks the authority to validate them. */
  async function proveNames(client: AcmeClient, order: AcmeOrderState, task: Task): Promise<void> {
    const pending = (await readAll(client, order)).filter(({ status }) => status === 'pending')
    const chosen: { challenge: AcmeChallenge; shown: Challenge }[] = []
    for (const { hostname, challenges } of pending) {
      const zone = task.zoneOf(hostname)
      const type = zone === null ? 'http-01' : 'dns-01'
      const challenge = challenges.find((one) => one.type === type)
      if (!challenge) {
        const cure = type === 'http-01' ? ' Host its zone here to prove it by DNS.' : ''
        throw new IssueFailure('refused', `The certificate authority offers no ${type} for ${hostname}.${cure}`, {
          hostname,
        })
      }
      const value = client.keyAuthorization(challenge)
      const name = hostname.replace(/^\*\./, '')
      chosen.push({ challenge, shown: { type, name, zone, token: challenge.token, value } })
    }
    const shown = chosen.map((one) => one.shown)
    await task.publish(shown)
    const unseen = await awaitPresence(challengeServers, shown, task.signal)
    if (unseen.length > 0)
      log.warn({ names: task.names, unseen }, 'challenges were not seen everywhere before the validation')
    for (const { challenge } of chosen) if (challenge.status === 'pending') await client.answer(challenge)
  }

  function readAll(client: AcmeClient, order: AcmeOrderState): Promise<Authorization[]> {
    return Promise.all(order.authorizations.map((url) => client.readAuthorization(url)))
  }

  /** Why an order is invalid. A failed validation has more details than the order. */
  async function invalidReason(client: AcmeClient, order: AcmeOrderState): Promise<unknown> {
    for (const { status, hostname, challenges } of await readAll(client, order)) {
      const error = challenges.find((challenge) => challenge.error)?.error
      if (status === 'invalid' && error) return failureOf(new AcmeProblem(error, 400), hostname)
    }
    return failureOf(new AcmeProblem(order.error ?? { detail: 'The order became invalid.' }, 400))
  }

  /** Polls the order until its status changes. */
  async function awaitChange(client: AcmeClient, order: AcmeOrderState, task: Task): Promise<AcmeOrderState> {
    const endMs = performance.now() + decisionTimeoutMs
    let current = order
    for (let polls = 0; current.status === order.status; polls++) {
      if (performance.now() > endMs) {
        // Some authorities leave an order pending after a validation has failed.
        const failed = (await readAll(client, current)).some(({ status }) => status === 'invalid')
        if (failed) return { ...current, status: 'invalid' }
        throw new IssueFailure('unreachable', 'The certificate authority did not respond to the order in time.')
      }
      const wishedMs = current.retryAt ? Math.min(current.retryAt.getTime() - Date.now(), maxPollMs) : 0
      await sleep(Math.max(wishedMs, pollDelaysMs[Math.min(polls, pollDelaysMs.length - 1)]!), undefined, {
        signal: task.signal,
      })
      current = await client.readOrder(order.url)
    }
    return current
  }

  async function obtain(task: Task): Promise<{ chain: string; key: string }> {
    const client = await connect(task.signal)
    const opened = await openOrder(client, task)
    const { key } = opened
    for (let order = opened.order; ; order = await awaitChange(client, order, task)) {
      if (order.status === 'valid') return { chain: await client.download(order), key }
      if (order.status === 'invalid') throw await invalidReason(client, order)
      if (order.status === 'pending') await proveNames(client, order, task)
      if (order.status === 'ready') await client.finalize(order, task.names, key)
    }
  }

  return {
    directory,
    issuer: null,
    renewalCheckMs: defaultCheckMs,
    async obtain(task) {
      try {
        return await obtain(task)
      } catch (error) {
        throw failureOf(error)
      }
    },
    async renewalWindow(certificate, signal) {
      if (certificate.directory !== directory) return null
      const id = renewalIdOf(certificate.chain)
      if (!id) return null
      const fallback = { at: certificate.renewAt, nextCheckAt: new Date(Date.now() + defaultCheckMs) }
      try {
        const client = await connect(signal)
        const info = await client.renewalInfo(id)
        if (!info) return null
        const wishedMs = info.retryAt ? info.retryAt.getTime() - Date.now() : defaultCheckMs
        const waitMs = Math.min(Math.max(wishedMs, minCheckMs), maxCheckMs)
        return { at: momentWithin(info.start, info.end, certificate.id), nextCheckAt: new Date(Date.now() + waitMs) }
      } catch (error) {
        signal.throwIfAborted()
        // Renewal information is optional. Without it, the planned time stays.
        log.debug({ err: error, certificateId: certificate.id }, 'the authority gave no renewal information')
        return fallback
      }
    },
    close: () => transport.close(),
  }
}
