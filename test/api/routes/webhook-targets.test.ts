import { afterAll, beforeAll, expect, test } from 'vitest'
import { isPublicAddress } from '../../../src/platform/http/public-address.ts'
import { targetRefusal } from '../../../src/services/webhooks/targets.ts'
import { sharedApi, startApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const send = (url: string, to = api) => to.call('POST', '/webhooks', { body: { url, events: ['*'] } })

test.each([
  'https://example.com',
  'https://example.com:8443/path?query=1',
  'http://example.com/hook',
  'https://münchen.example/hook',
  'https://8.8.8.8/',
  'https://[2606:4700:4700::1111]/hook',
  'https://[::ffff:8.8.8.8]/',
  `https://example.com/${'a'.repeat(1980)}`,
])('%s is taken and kept as it was written', async (url) => {
  const made = await send(url)
  expect(made.status, made.text).toBe(201)
  expect(made.body.url).toBe(url)
})

test.each([
  ['no URL', 'example.com/hook'],
  ['a path', '/hook'],
  ['another scheme', 'ftp://example.com/'],
  ['a scheme without slashes', 'https:example.com'],
  ['a script', 'javascript:alert(1)'],
  ['no host', 'https://'],
  ['a user', 'https://user@example.com/'],
  ['a user and a password', 'https://user:password@example.com/'],
  ['empty credentials', 'https://@example.com/'],
  ['a fragment', 'https://example.com/#part'],
  ['an empty fragment', 'https://example.com/#'],
  ['localhost', 'https://localhost/hook'],
  ['localhost in capitals with a port', 'http://LOCALHOST:3000'],
  ['localhost with a final dot', 'https://localhost./'],
  ['a name below localhost', 'https://app.localhost/'],
  ['a name without a dot', 'https://vm/hook'],
  ['a name of private networks', 'https://a.internal/hook'],
  ['loopback', 'https://127.0.0.1/'],
  ['loopback with a final dot', 'https://127.0.0.1./'],
  ['loopback in short', 'https://127.1/'],
  ['loopback as a decimal number', 'http://2130706433/'],
  ['loopback as a hexadecimal number', 'http://0x7f000001/'],
  ['loopback in hexadecimal parts', 'http://0x7f.0.0.0x1/'],
  ['loopback in octal', 'http://0177.0.0.01/'],
  ['loopback in full-width digits', 'http://１２７.０.０.１/'],
  ['loopback percent-encoded', 'http://%31%32%37.0.0.1/'],
  ['nobody', 'http://0.0.0.0/'],
  ['nobody in short', 'http://0/'],
  ['a private network', 'https://10.1.2.3/'],
  ['a private network', 'https://172.31.255.255/'],
  ['a private network', 'https://192.168.1.1/'],
  ['metadata of a cloud', 'http://169.254.169.254/latest/meta-data/'],
  ['metadata as a number', 'http://2852039166/'],
  ['IPv6 loopback', 'http://[::1]/'],
  ['IPv6 nobody', 'http://[::]/'],
  ['IPv6 link-local', 'http://[fe80::1]/'],
  ['IPv6 private', 'http://[fd00:ec2::254]/'],
  ['loopback mapped into IPv6', 'http://[::ffff:127.0.0.1]/'],
  ['loopback mapped into IPv6 in hexadecimal', 'http://[::ffff:7f00:1]/'],
  ['metadata mapped into IPv6', 'http://[0:0:0:0:0:ffff:a9fe:a9fe]/'],
])('refuses %s and names the field: %s', async (_name, url) => {
  const { status, body } = await send(url)
  expect(status).toBe(422)
  expect(body.errors).toMatchObject([{ in: 'body', pointer: '#/url', code: 'bad_url' }])
})

test.each([
  ['blanks', 'https://example.com/a b', 'bad_format'],
  ['a line break that parsers drop', 'https://exam\nple.com/', 'bad_format'],
  ['a backslash that parsers turn', 'https:\\\\example.com', 'bad_format'],
  ['a control character in front', '\u0001https://example.com', 'bad_format'],
  ['2,001 characters', `https://example.com/${'a'.repeat(1981)}`, 'too_long'],
])('refuses %s', async (_name, url, code) => {
  const { status, body } = await send(url)
  expect(status).toBe(422)
  expect(body.errors).toMatchObject([{ pointer: '#/url', code }])
})

test('production takes https only', () => {
  const production = { production: true, webhookAllowPrivate: false }
  expect(targetRefusal('http://example.com/', production)).toBe('must start with https://')
  expect(targetRefusal('https://example.com/', production)).toBeNull()
  expect(targetRefusal('http://127.0.0.1/', { production: true, webhookAllowPrivate: true })).not.toBeNull()
})

test('WEBHOOK_ALLOW_PRIVATE lets private targets through, and nothing else', async () => {
  const open = await startApi({ WEBHOOK_ALLOW_PRIVATE: 'true' })
  try {
    for (const url of ['http://127.0.0.1:3000/', 'http://localhost/', 'http://[::1]/', 'https://10.0.0.1/']) {
      expect((await send(url, open)).status).toBe(201)
    }
    expect((await send('https://user@10.0.0.1/', open)).status).toBe(422)
  } finally {
    await open.stop()
  }
})

test.each([
  '1.1.1.1',
  '11.0.0.1',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '223.255.255.255',
  '2606:4700::1111',
  '2a00:1450:4001:80f::200e',
  '::ffff:1.1.1.1',
  '::ffff:101:101',
  '64:ff9b::1.1.1.1',
  '64:ff9b::808:808',
])('%s is a public address', (address) => expect(isPublicAddress(address)).toBe(true))

test.each([
  '0.1.2.3',
  '10.255.255.255',
  '100.64.0.1',
  '100.100.100.200',
  '127.255.255.254',
  '168.63.129.16',
  '169.254.0.1',
  '172.16.0.0',
  '192.0.0.192',
  '192.0.2.1',
  '192.168.255.255',
  '198.19.255.255',
  '198.51.100.7',
  '203.0.113.9',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:10.0.0.1',
  '::FFFF:192.168.0.1',
  '::ffff:a9fe:a9fe',
  '::ffff:0:127.0.0.1',
  '64:ff9b::10.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b:1::1.1.1.1',
  '100::1',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '3fff::1',
  '5f00::1',
  'fc00::1',
  'fd12:3456::1',
  'fe80::1',
  'fe80::1%eth0',
  '2606:4700::1111%eth0',
  'fec0::1',
  'ff02::1',
  '',
  'localhost',
  '127.1',
  '1.1.1.1 ',
])('%s is not a public address', (address) => expect(isPublicAddress(address)).toBe(false))
