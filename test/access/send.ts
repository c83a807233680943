// Sends one request as it is, from an address of its own, and holds the answer against what every answer must be.
import { expect } from 'vitest'
import type { Answer, TestApi } from '../helpers/api.ts'
import { createResponseChecker } from '../helpers/responses.ts'

export type Sent = {
  method: string
  /** Path and query below /api. */
  path: string
  token?: string | null
  headers?: Record<string, string>
  payload?: string | Buffer
}

export type Send = (request: Sent) => Promise<Answer>

let addresses = 0

/** Bad tokens are limited per address, so every request comes from another address of the loopback network. */
export function newAddress(): string {
  const n = ++addresses
  return `127.${1 + ((n >> 16) & 127)}.${(n >> 8) & 255}.${n & 255}`
}

export function createSend(api: TestApi): Send {
  const check = createResponseChecker(api.app)
  return async ({ method, path, token, headers, payload }) => {
    const response = await api.app.inject({
      method: method as 'GET',
      url: `/api${path}`,
      headers: { ...(token && { authorization: `Bearer ${token}` }), ...headers },
      remoteAddress: newAddress(),
      ...(payload !== undefined && { payload }),
    })
    const text = response.body
    const json = /json/.test(String(response.headers['content-type'] ?? '')) && text !== ''
    const answer: Answer = {
      status: response.statusCode,
      headers: response.headers as Answer['headers'],
      body: json ? JSON.parse(text) : undefined,
      text,
    }
    check(method, path, answer)
    return answer
  }
}

/** What holds for every answer, whatever was asked: no 5xx, and a refusal is a whole problem of its own request. */
export function expectSound(answer: Answer, method: string): void {
  expect(answer.status, answer.text).toBeLessThan(500)
  expect(answer.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,128}$/)
  if (answer.status < 400) return
  expect(answer.headers['content-type'], answer.text).toMatch(/^application\/problem\+json/)
  // What of a body is never put on the wire, an injected answer may still hold.
  if (method === 'HEAD') return
  const { type, title, status, detail, code, requestId, errors } = answer.body
  for (const text of [title, detail, code]) expect(text).toEqual(expect.stringMatching(/./))
  expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/)
  expect(type).toMatch(new RegExp(`^https?://.+/errors/${code}$`))
  expect(status).toBe(answer.status)
  expect(requestId).toBe(answer.headers['x-request-id'])
  expect(answer.text, 'internals leak').not.toMatch(/node_modules|prisma|postgres|\bat .+\.[jt]s:\d+/i)
  if (answer.status !== 422 || code === 'idempotency_key_reused') return
  expect(errors?.length, answer.text).toBeGreaterThan(0)
  for (const error of errors) expect(error).toMatchObject({ pointer: expect.stringMatching(/^#/) })
}
