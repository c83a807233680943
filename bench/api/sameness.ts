// Checks before measuring that the floor responds with the same status and JSON as our API.
import type { Sent } from './endpoints.ts'

type Answer = { status: number; located: boolean; linked: boolean; body: unknown }

async function ask(url: string, token: string, sent: Sent): Promise<Answer> {
  const response = await fetch(url + sent.path, {
    method: sent.method,
    headers: { authorization: `Bearer ${token}`, ...(sent.body && { 'content-type': 'application/json' }) },
    ...(sent.body && { body: sent.body }),
  })
  return {
    status: response.status,
    located: response.headers.has('location'),
    linked: response.headers.has('link'),
    body: await response.json(),
  }
}

/** Names and types in order; values that differ for each POST, such as IDs and times, are masked. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (value === null || typeof value !== 'object') return value === null ? null : typeof value
  return Object.entries(value).map(([key, child]) => [key, shapeOf(child)])
}

/** Throws if the two servers, whose databases are equal, respond differently to a request. */
export async function expectSame(ours: string, floor: string, token: string, sent: Sent): Promise<void> {
  const answers = await Promise.all([ours, floor].map((url) => ask(url, token, sent)))
  const [one, other] = answers.map((answer) =>
    JSON.stringify({ ...answer, body: sent.method === 'GET' ? answer.body : shapeOf(answer.body) }),
  )
  if (one === other && answers[0]!.status < 300) return
  throw new Error(`${sent.method} ${sent.path}: the two answers differ.\nours:  ${one}\nfloor: ${other}`)
}
