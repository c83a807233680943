// `berth events`, and `berth listen`: sends events to a program on this machine, signed like webhooks.
import { createHmac, randomBytes } from 'node:crypto'
import type { Event } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import { collect, parseLimit } from '../kit/collect.ts'
import type { Context } from '../kit/context.ts'
import { usage } from '../kit/failures.ts'
import { isLoopback } from '../kit/server.ts'
import { clean, time } from '../kit/text.ts'

type Filter = { type?: string[] }

const line = (it: Event) => `${time(it.createdAt)}  ${clean(it.type)}  ${clean(it.subject)}  ${clean(it.actor)}`
const filterOf = ({ type }: Filter) => (type ? { type } : {}) as never

export const events: Action<Filter & { follow?: boolean; limit: string }> = async (context, _, options) => {
  const { out, signal } = context
  const berth = await context.berth()
  if (options.follow) {
    for await (const event of berth.events(filterOf(options), { signal })) out.item(event, () => line(event))
    return
  }
  const max = parseLimit(options.limit)
  const query = { ...(options.type && { type: options.type }), limit: Math.max(1, Math.min(100, max)) }
  const found = await collect(berth.list('/events', { params: { query } } as never), max)
  out.list(found, ['TIME', 'TYPE', 'SUBJECT', 'ACTOR'], (it: Event) => [
    time(it.createdAt),
    it.type,
    it.subject,
    it.actor,
  ])
}

export const listen: Action<Filter & { forwardTo: string; secret?: string }> = async (context, _, options) => {
  const { out, signal } = context
  const target = localUrl(options.forwardTo)
  const secret = options.secret ?? `whsec_${randomBytes(24).toString('base64')}`
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  if (key.length === 0) throw usage('--secret must be a webhook secret: whsec_…')
  out.say(`Sending events to ${target.href}. They are signed with ${secret}`)
  for await (const event of (await context.berth()).events(filterOf(options), { signal })) {
    const result = await forward(context, target, key, event)
    out.item(
      { event: event.id, type: event.type, ...result },
      () => `${result.status ?? clean(result.error)}  ${line(event)}`,
    )
  }
}

function localUrl(text: string): URL {
  let url: URL
  try {
    url = new URL(/^https?:\/\//.test(text) ? text : `http://${text}`)
  } catch {
    throw usage(`--forward-to must be a URL such as http://localhost:3000/hooks, not ${text}.`)
  }
  // Events must not leave this machine unencrypted; other machines need a webhook.
  if (!isLoopback(url.hostname)) throw usage('--forward-to must be a URL of this machine.')
  return url
}

type Delivery = { status: number | null; error?: string }

/** Sends an event once: a developer sees the failure, so retries would only repeat it. */
async function forward({ signal }: Context, target: URL, key: Buffer, event: Event): Promise<Delivery> {
  const { id, type, createdAt, actor, subject, data } = event
  const body = JSON.stringify({ id, type, createdAt, actor, subject, data })
  const timestamp = Math.floor(Date.now() / 1000)
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  try {
    const response = await fetch(target, {
      method: 'POST',
      redirect: 'manual',
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Berth-Webhooks/1',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': `v1,${signature}`,
      },
      signal: AbortSignal.any([signal, AbortSignal.timeout(15_000)]),
    })
    await response.body?.cancel()
    return { status: response.status }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    const { message, cause } = error as Error
    return {
      status: null,
      error: cause instanceof Error ? cause.message || String((cause as NodeJS.ErrnoException).code) : message,
    }
  }
}
