// `berth tickets`: support tickets.
import type { Schemas } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import { collect } from '../kit/collect.ts'
import { usage } from '../kit/failures.ts'
import { canAsk, readStdin } from '../kit/prompt.ts'
import { clean, cleanLines, time } from '../kit/text.ts'

type Ticket = Schemas['Ticket']

export const list: Action<{ status?: string }> = async ({ berth, out }, _, { status }) => {
  const query = status ? { status: [status.toUpperCase()] } : {}
  const found = await collect((await berth()).list('/tickets', { params: { query } } as never))
  const heads = ['ID', 'STATUS', 'PRIORITY', 'CHANGED', 'SUBJECT']
  out.list(found, heads, (it: Ticket) => [it.id, it.status, it.priority, time(it.updatedAt), it.subject])
}

async function messageOf(given: string | undefined): Promise<string> {
  if (given !== undefined) return given
  if (canAsk()) throw usage('Give the message with --message or on stdin.')
  return readStdin()
}

type New = { message?: string; priority?: string; related?: string }

export const open: Action<New> = async ({ berth, out }, [subject], options) => {
  const body = { subject, ...options, message: await messageOf(options.message) } as never
  const created: Ticket = await (await berth()).post('/tickets', { body })
  out.say(`Opened ${clean(created.id)}.`)
  out.show(created, () => clean(created.id))
}

export const show: Action = async (context, [id]) => {
  const berth = await context.berth()
  const path = { id: id! }
  const ticket = await berth.get('/tickets/{id}', { params: { path } })
  const messages = await collect(berth.list('/tickets/{id}/messages', { params: { path, query: { order: 'asc' } } }))
  context.out.show({ ...ticket, messages }, () =>
    [
      `${clean(ticket.subject)} (${clean(ticket.status)}, ${clean(ticket.priority)})`,
      ...messages.map((it) => `\n${time(it.createdAt)} ${clean(it.author)}:\n${cleanLines(it.message)}`),
    ].join('\n'),
  )
}

export const reply: Action<{ message?: string }> = async ({ berth, out }, [id], { message }) => {
  const body = { message: await messageOf(message) }
  const created = await (await berth()).post('/tickets/{id}/messages', { params: { path: { id: id! } }, body })
  out.say('Sent.')
  out.show(created, () => '')
}
