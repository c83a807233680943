// The API and the delivery engine as production joins them, with receivers on loopback.
import type { Registry } from 'prom-client'
import { expect } from 'vitest'
import { type Deliveries, type DeliveryOptions, startDeliveries } from '../../../src/engines/delivery/deliveries.ts'
import { append } from '../../../src/services/events/events.ts'
import { type Answer, startApi, type TestApi } from '../../helpers/api.ts'
import { type Behaviour, type Receiver, startReceiver } from './receiver.ts'

export type Hook = { id: string; secret: string; receiver: Receiver; accountId: string; token: string }

export type World = {
  api: TestApi
  /** A receiver and a webhook of its own account. */
  hook(behaviour?: Behaviour, body?: object): Promise<Hook>
  /** Writes events of the hook's account, each in a transaction of its own; returns their ids. */
  emit(hook: { accountId: string }, count?: number): Promise<string[]>
  deliveries(hook: Hook): Promise<Answer['body'][]>
  /** The delivery with its attempts. */
  delivery(hook: Hook, id: string): Promise<Answer['body']>
  work(options?: DeliveryOptions, registry?: Registry): Deliveries
  stop(): Promise<void>
}

export async function startWorld(environment: Record<string, string> = {}): Promise<World> {
  const api = await startApi({ WEBHOOK_ALLOW_PRIVATE: 'true', ...environment })
  const receivers: Receiver[] = []
  const workers = new Set<Deliveries>()
  return {
    api,
    async hook(behaviour, body = {}) {
      const receiver = await startReceiver(behaviour)
      receivers.push(receiver)
      const { accountId, token } = await api.newAccount()
      const made = await api.call('POST', '/webhooks', { token, body: { url: receiver.url, events: ['*'], ...body } })
      expect(made.status, made.text).toBe(201)
      return { id: made.body.id, secret: made.body.secret, receiver, accountId, token }
    },
    async emit({ accountId }, count = 1) {
      const seen = new Set((await api.db.event.findMany({ where: { accountId } })).map((event) => event.id))
      for (let n = 0; n < count; n++) {
        const data = { id: `tkt_${n}`, n }
        const subject = 'tkt_1'
        await append(api.db, [{ accountId, projectId: null, type: 'ticket.created', actor: 'system', subject, data }])
      }
      const all = await api.db.event.findMany({ where: { accountId }, orderBy: { seq: 'asc' } })
      return all.map((event) => event.id).filter((id) => !seen.has(id))
    },
    async deliveries({ id, token }) {
      return (await api.call('GET', `/webhooks/${id}/deliveries?order=asc&limit=100`, { token })).body.deliveries
    },
    async delivery({ id, token }, deliveryId) {
      return (await api.call('GET', `/webhooks/${id}/deliveries/${deliveryId}`, { token })).body
    },
    work(options, registry) {
      const worker = startDeliveries({ ...api.deps, registry }, options)
      workers.add(worker)
      return {
        pause: worker.pause,
        async stop() {
          workers.delete(worker)
          await worker.stop()
        },
      }
    },
    async stop() {
      for (const receiver of receivers) await receiver.close()
      for (const worker of workers) await worker.stop()
      await api.stop()
    },
  }
}
