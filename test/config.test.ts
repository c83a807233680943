import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../src/config.ts'

const safe = {
  NODE_ENV: 'production',
  DATABASE_URL: 'postgres://db/berth',
  BASE_URL: 'https://api.example.com',
  SECRETS_KEY: Buffer.alloc(32, 1).toString('base64'),
  TRUSTED_PROXIES: '10.0.0.1',
  DEPLOYMENT_DOMAIN: 'example.app',
  NAMESERVERS: 'ns1.example.com,ns2.example.com',
  ACME_DIRECTORY_URL: 'https://ca.example.com/directory',
}

describe('configuration', () => {
  test('needs nothing in development', () => {
    expect(loadConfig({})).toMatchObject({
      host: '127.0.0.1',
      port: 3000,
      baseUrl: 'http://localhost:3000',
      databaseUrl: null,
      nameservers: ['ns1.berth.test', 'ns2.berth.test'],
      region: 'local-1',
      rateLimitPerMinute: 600,
      rateLimitPerAccountPerMinute: 1800,
      maxInFlight: 1000,
      maxInFlightPerAccount: 100,
      maxWaits: 10_000,
      maxStreams: 10_000,
      quotas: { waits: 50, streams: 20 },
      metricsPort: 9090,
    })
  })

  test('gives an account three times the limit of a token, unless told otherwise', () => {
    expect(loadConfig({ RATE_LIMIT_PER_MINUTE: '10' }).rateLimitPerAccountPerMinute).toBe(30)
    const told = { RATE_LIMIT_PER_MINUTE: '10', RATE_LIMIT_PER_ACCOUNT_PER_MINUTE: '12' }
    expect(loadConfig(told).rateLimitPerAccountPerMinute).toBe(12)
  })

  test('takes a pool of 2 to 26 nameservers, in lower case and without their last dots', () => {
    const pool = Array.from({ length: 26 }, (_, index) => `NS${index}.Berth.Test.`)
    expect(loadConfig({ NAMESERVERS: pool.join() }).nameservers).toEqual(
      pool.map((_, index) => `ns${index}.berth.test`),
    )
  })

  const oidc = { OIDC_CLIENT_ID: 'id', OIDC_CLIENT_SECRET: 'secret' }
  test('takes an identity provider, named by its host unless told otherwise', () => {
    expect(loadConfig({}).oidc).toBeNull()
    const found = loadConfig({ ...oidc, OIDC_ISSUER: 'https://id.example.com/realms/one' }).oidc
    expect(found).toEqual({
      ...{ issuer: 'https://id.example.com/realms/one', clientId: 'id', clientSecret: 'secret' },
      ...{ name: 'id.example.com', allowSignup: false },
    })
    const local = { ...oidc, OIDC_ISSUER: 'http://127.0.0.1:4000', OIDC_NAME: 'Mine', OIDC_ALLOW_SIGNUP: 'true' }
    expect(loadConfig(local).oidc).toMatchObject({ name: 'Mine', allowSignup: true })
    expect(() => loadConfig({ ...safe, ...local })).toThrow('OIDC_ISSUER')
    expect(() => loadConfig({ OIDC_ISSUER: 'https://id.example.com' })).toThrow('go together')
  })

  test.each([
    ...['http://id.example.com', 'http://localhost.example.com', 'http://127.evil.example', 'id.example.com'],
    ...['https://id.example.com?x=1', 'https://id.example.com#x', 'ftp://localhost'],
  ])('refuses %s as an identity provider', (issuer) => {
    expect(() => loadConfig({ ...oidc, OIDC_ISSUER: issuer })).toThrow(ConfigError)
  })

  const keys = { ARTIFACTS_ACCESS_KEY: 'a', ARTIFACTS_SECRET_KEY: 'b' }
  test('takes a bucket for artifacts, with a prefix or without one', () => {
    expect(loadConfig({}).artifacts).toBeNull()
    expect(loadConfig({ ARTIFACTS_URL: 's3://one/a/b', ARTIFACTS_REGION: 'eu-1', ...keys }).artifacts).toEqual({
      ...{ bucket: 'one', prefix: 'a/b/', endpoint: 'https://s3.eu-1.amazonaws.com', region: 'eu-1' },
      ...{ accessKey: 'a', secretKey: 'b', cacheMb: 10_240 },
    })
    const own = { ARTIFACTS_URL: 's3://one/', ARTIFACTS_ENDPOINT: 'http://127.0.0.1:9000', ...keys }
    expect(loadConfig(own).artifacts).toMatchObject({ prefix: '', endpoint: 'http://127.0.0.1:9000' })
  })

  test.each(['one', 's3://', 's3://UP', 's3://one/../two', 's3://one//two', 's3://one/a?b', 'http://one'])(
    'refuses %s as a bucket',
    (url) => {
      expect(() => loadConfig({ ARTIFACTS_URL: url, ...keys })).toThrow('ARTIFACTS_URL must be')
    },
  )

  test('takes an empty variable as unset', () => {
    expect(loadConfig({ PORT: '', DATABASE_URL: '' })).toMatchObject({ port: 3000, databaseUrl: null })
  })

  test.each([
    ['PORT', 'http'],
    ['PORT', '70000'],
    ['RATE_LIMIT_PER_MINUTE', '0'],
    ['RATE_LIMIT_PER_ACCOUNT_PER_MINUTE', '0'],
    ['MAX_IN_FLIGHT_PER_ACCOUNT', '0'],
    ['MAX_WAITS', '0'],
    ['MAX_STREAMS', 'many'],
    ['QUOTA_WAITS', '-1'],
    ['LOG_LEVEL', 'loud'],
    ['BASE_URL', 'ftp://x'],
    ['SECRETS_KEY', 'short'],
    ['NAMESERVERS', 'only.one'],
    ['NAMESERVERS', 'same.host,SAME.host.'],
    ['NAMESERVERS', 'ns1.berth.test,no_host.berth.test'],
    ['NAMESERVERS', Array.from({ length: 27 }, (_, index) => `ns${index}.berth.test`).join()],
    ['GIT_URL_TEMPLATE', 'https://host/'],
    ['TLS_CERT_FILE', 'cert.pem'],
    ['ARTIFACTS_URL', 's3://one'],
    ['ARTIFACTS_ENDPOINT', 's3.example.com'],
    ['ARTIFACTS_CACHE_MB', '1'],
  ])('refuses %s=%s, naming it', (name, value) => {
    expect(() => loadConfig({ [name]: value })).toThrow(ConfigError)
    expect(() => loadConfig({ [name]: value })).toThrow(name)
  })

  test('is accepted in production when it is safe', () => {
    expect(loadConfig(safe).production).toBe(true)
  })

  test.each([
    ['DATABASE_URL', ''],
    ['BASE_URL', 'http://api.example.com'],
    ['SECRETS_KEY', ''],
    ['TRUSTED_PROXIES', ''],
    ['TRUSTED_PROXIES', '10.0.0.1,0.0.0.0/0'],
    ['TRUSTED_PROXIES', '::/0, 10.0.0.1'],
    ['NODE_TLS_REJECT_UNAUTHORIZED', '0'],
  ])('is refused in production without a safe %s', (name, value) => {
    expect(() => loadConfig({ ...safe, [name]: value })).toThrow(name)
  })

  test.each([
    ['ALLOW_DEVELOPMENT_CA', { ACME_DIRECTORY_URL: '' }],
    ['ALLOW_TEST_NAMESERVERS', { NAMESERVERS: '' }],
    ['ALLOW_TEST_NAMESERVERS', { NAMESERVERS: 'ns1.example.com,ns2.Berth.Test.' }],
    ['ALLOW_LOCALHOST', { DEPLOYMENT_DOMAIN: '' }],
    ['ALLOW_LOCALHOST', { DEPLOYMENT_DOMAIN: 'Sites.localhost' }],
    ['ALLOW_LOCALHOST', { BASE_URL: 'https://localhost:3000' }],
  ])('is refused in production, unless %s is set, with %o', (permission, setting) => {
    const refusal = () => loadConfig({ ...safe, ...setting })
    expect(refusal).toThrow(permission)
    expect(refusal).toThrow(/^[^\n]*: set [A-Z_]+[^\n]*\.$/)
    const allowed = loadConfig({ ...safe, ...setting, [permission]: 'true' })
    expect(allowed.production).toBe(true)
    // Only the named ones are allowed.
    for (const other of ['ALLOW_DEVELOPMENT_CA', 'ALLOW_TEST_NAMESERVERS', 'ALLOW_LOCALHOST']) {
      if (other !== permission) expect(() => loadConfig({ ...safe, ...setting, [other]: 'true' })).toThrow(permission)
    }
  })

  test('names every development default at once, and development has them all', () => {
    const { DEPLOYMENT_DOMAIN, NAMESERVERS, ACME_DIRECTORY_URL, ...bare } = safe
    const told = /ALLOW_DEVELOPMENT_CA.*\n.*ALLOW_TEST_NAMESERVERS.*\n.*DEPLOYMENT_DOMAIN.*ALLOW_LOCALHOST/
    expect(() => loadConfig(bare)).toThrow(told)
    expect(loadConfig({}).production).toBe(false)
  })

  test('lets the API have a certificate of its own where its address is a name of ours', () => {
    const own = { ...safe, TRUSTED_PROXIES: '', DEPLOYMENT_DOMAIN: 'berth.app', BASE_URL: 'https://API.berth.app' }
    expect(loadConfig(own).managedTlsHost).toBe('api.berth.app')
    expect(loadConfig({ ...own, BASE_URL: 'https://berth.app' }).managedTlsHost).toBe('berth.app')
    expect(() => loadConfig({ ...own, BASE_URL: 'https://notberth.app' })).toThrow('TLS_CERT_FILE')
    // Certificate files win, and a server behind a proxy speaks no TLS.
    expect(loadConfig({ ...own, TLS_CERT_FILE: 'c.pem', TLS_KEY_FILE: 'k.pem' }).managedTlsHost).toBeNull()
    expect(loadConfig({ ...own, TRUSTED_PROXIES: '10.0.0.1' }).managedTlsHost).toBeNull()
    expect(loadConfig({}).managedTlsHost).toBeNull()
  })

  test('sends mails where there is a mail server, from an address of the API if there is no other', () => {
    expect(loadConfig({}).mail).toBeNull()
    expect(loadConfig({ MAIL_FROM: 'a@example.com' }).mail).toBeNull()
    const own = { SMTP_URL: 'smtp://mail.example.com', BASE_URL: 'https://api.example.com:3000' }
    expect(loadConfig(own).mail).toEqual({
      ...{ host: 'mail.example.com', port: 587, secure: false, auth: null },
      from: { name: 'Berth', address: 'berth@api.example.com' },
    })
    const full = { SMTP_URL: 'smtps://a%40b:p%2F%3Aq@[::1]:2525/', MAIL_FROM: '"Ada, Inc." <ada@example.com>' }
    expect(loadConfig(full).mail).toEqual({
      ...{ host: '::1', port: 2525, secure: true, auth: { user: 'a@b', pass: 'p/:q' } },
      from: { name: 'Ada, Inc.', address: 'ada@example.com' },
    })
    expect(loadConfig({ SMTP_URL: 'smtps://h', MAIL_FROM: 'ada@example.com' }).mail).toMatchObject({
      ...{ port: 465, from: { name: '', address: 'ada@example.com' } },
    })
  })

  test.each([
    'http://a:hunter2@h',
    'smtp://',
    'smtp:a:hunter2@h',
    'smtp://a:hunter2%@h',
    'smtp://a:hunter2@h/x',
    'smtp://a:hunter2@h?x',
  ])('refuses the mail server %s, and does not repeat its password', (SMTP_URL) => {
    const refusal = () => loadConfig({ SMTP_URL })
    expect(refusal).toThrow('SMTP_URL must be')
    expect(refusal).not.toThrow('hunter2')
  })

  test.each([
    'Ada',
    'ada@',
    'Ada <ada@example.com',
    'ada@example.com>',
    'a@b.c\r\nBcc: x@y.z',
    'a@b.c, d@e.f',
    '<a@b.c> <d@e.f>',
  ])('refuses %j as the sender of mails', (MAIL_FROM) => {
    expect(() => loadConfig({ SMTP_URL: 'smtp://h', MAIL_FROM })).toThrow('MAIL_FROM must be')
  })
})
