// Checks before measuring that the floor responds with the same status and JSON as our API.
import type { EndpointRequest } from './endpoints.ts'

type Result = { status: number; located: boolean; linked: boolean; body: unknown }

async function send(url: string, token: string, request: EndpointRequest): Promise<Result> {
  const response = await fetch(url + request.path, {
    method: request.method,
    headers: { authorization: `Bearer ${token}`, ...(request.body && { 'content-type': 'application/json' }) },
    ...(request.body && { body: request.body }),
  })
  return {
    status: response.status,
    located: response.headers.has('location'),
    linked: response.headers.has('link'),
    body: await response.json(),
  }
}

/** Field names and types in order, because IDs and times differ for each POST. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (value === null || typeof value !== 'object') return value === null ? null : typeof value
  return Object.entries(value).map(([key, child]) => [key, shapeOf(child)])
}

/** Throws if the two servers, whose databases are equal, respond differently to a request. */
export async function expectSame(ours: string, floor: string, token: string, request: EndpointRequest): Promise<void> {
  const results = await Promise.all([ours, floor].map((url) => send(url, token, request)))
  const [one, other] = results.map((result) =>
    JSON.stringify({ ...result, body: request.method === 'GET' ? result.body : shapeOf(result.body) }),
  )
  if (one === other && results[0]!.status < 300) return
  throw new Error(`${request.method} ${request.path}: the two responses differ.\nours:  ${one}\nfloor: ${other}`)
}
