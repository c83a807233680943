// The verification of webhooks by the SDK, against the library of Standard Webhooks.
import { Webhook } from 'standardwebhooks'
import { describe, expect, test, vi } from 'vitest'
import { verifyWebhook, WebhookVerificationError } from '../../sdk/src/index.ts'

const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
const other = `whsec_${Buffer.alloc(32, 6).toString('base64')}`
const event = { id: 'evt_1', type: 'ticket.created', subject: 'tkt_1', data: { subject: 'Größe ✓' } }
const body = JSON.stringify(event)

function headersOf(options: { at?: Date; by?: string; id?: string } = {}) {
  const { at = new Date(), by = secret, id = 'evt_1' } = options
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(by).sign(id, at, body),
  }
}
const secondsFromNow = (seconds: number) => new Date(Date.now() + seconds * 1000)

describe('a genuine request', () => {
  const headers = headersOf()
  const capitals = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]))
  const both = `${headersOf({ by: other })['webhook-signature']} ${headers['webhook-signature']}`
  test.each([
    ['as text', { body, headers }],
    ['as octets', { body: new TextEncoder().encode(body), headers }],
    ['with Headers', { body, headers: new Headers(headers) }],
    ['with names in capitals', { body, headers: capitals }],
    ['signed by two secrets', { body, headers: { ...headers, 'webhook-signature': both } }],
    ['with a signature of another kind', { body, headers: { ...headers, 'webhook-signature': `v1a,xx ${both}` } }],
    ['of some minutes ago', { body, headers: headersOf({ at: secondsFromNow(-290) }) }],
    [
      'of long ago, if that is allowed',
      { body, headers: headersOf({ at: secondsFromNow(-900) }), toleranceSeconds: 1000 },
    ],
  ])('%s is its event', async (_case, request) => {
    expect(await verifyWebhook({ ...request, secret })).toEqual(event)
  })
})

describe('a request', () => {
  const headers = headersOf()
  const signature = headers['webhook-signature']
  test.each([
    ['with another body', { body: body.replace('tkt_1', 'tkt_2'), headers }],
    ['with another id', { body, headers: { ...headers, 'webhook-id': 'evt_2' } }],
    ['signed by another secret', { body, headers: headersOf({ by: other }) }],
    ['that is old', { body, headers: headersOf({ at: secondsFromNow(-310) }) }],
    ['of the future', { body, headers: headersOf({ at: secondsFromNow(310) }) }],
    [
      'with another time',
      { body, headers: { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 1) } },
    ],
    ['with no time', { body, headers: { ...headers, 'webhook-timestamp': 'NaN' } }],
    ['with an endless time', { body, headers: { ...headers, 'webhook-timestamp': '1e400' } }],
    ['without headers', { body, headers: {} }],
    ['with two signatures as a list', { body, headers: { ...headers, 'webhook-signature': [signature, signature] } }],
    ['with half a signature', { body, headers: { ...headers, 'webhook-signature': signature.slice(0, 20) } }],
    ['with no base64', { body, headers: { ...headers, 'webhook-signature': 'v1,!!! v1, v1' } }],
    [
      'with a signature of another version',
      { body, headers: { ...headers, 'webhook-signature': `v2${signature.slice(2)}` } },
    ],
  ])('%s is refused', async (_case, request) => {
    await expect(verifyWebhook({ ...request, secret })).rejects.toThrow(WebhookVerificationError)
  })

  test('cannot be verified without a secret, and that is the caller’s fault', async () => {
    for (const wrong of ['', 'whsec_', 'whsec_???']) {
      await expect(verifyWebhook({ body, headers, secret: wrong })).rejects.toThrow(TypeError)
    }
  })
})

test('a request with a thousand signatures costs no more than one with a few', async () => {
  const verify = vi.spyOn(crypto.subtle, 'verify')
  const headers = { ...headersOf(), 'webhook-signature': 'v1,QUJD '.repeat(1_000).trim() }
  await expect(verifyWebhook({ body, headers, secret })).rejects.toThrow(WebhookVerificationError)
  expect(verify.mock.calls.length).toBeLessThanOrEqual(10)
  verify.mockRestore()
})
