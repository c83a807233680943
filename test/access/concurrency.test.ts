// Requests sent twice, at once, or cut off in between: one Idempotency-Key is one piece of work, done whole or not at all.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { waitsForLock } from '../helpers/database.ts'
import { until } from '../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('site')
})
afterAll(() => api.stop())

let keys = 0
const newKey = () => `key-${++keys}`

const question = (subject: string) => ({ subject, message: 'Why?' })
const open = (key: string, subject: string, token?: string) =>
  api.call('POST', '/tickets', {
    headers: { 'idempotency-key': key },
    body: question(subject),
    ...(token && { token }),
  })
const ticketsOf = (subject: string) => api.db.ticket.count({ where: { subject } })
const keptKeys = (key: string) => api.db.idempotencyKey.findMany({ where: { key } })

async function withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: api.databaseUrl })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Runs `body` inside every transaction that is about to keep an answer: after the work, before the commit. */
async function beforeCommit<T>(body: string, work: () => Promise<T>): Promise<T> {
  return withClient(async (client) => {
    await client.query(`CREATE FUNCTION trip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN NEW; END $$;
      CREATE TRIGGER trip BEFORE INSERT ON idempotency_key FOR EACH ROW EXECUTE FUNCTION trip()`)
    try {
      return await work()
    } finally {
      await client.query('DROP TRIGGER trip ON idempotency_key; DROP FUNCTION trip()')
    }
  })
}

describe('requests with one key at the same time', () => {
  test.each([2, 20])('%i of them make one row; the others get its answer or are told to come back', async (count) => {
    const key = newKey()
    const subject = `at once ${count}`
    const answers = await Promise.all(Array.from({ length: count }, () => open(key, subject)))
    const done = answers.filter(({ status }) => status === 201)
    const waiting = answers.filter(({ status }) => status !== 201)
    expect(done.length).toBeGreaterThan(0)
    expect(new Set(done.map(({ text }) => text)).size).toBe(1)
    expect(done.filter(({ headers }) => headers['idempotency-replayed'] === undefined)).toHaveLength(1)
    for (const { status, body, headers } of waiting) {
      expect({ status, code: body.code }).toEqual({ status: 409, code: 'idempotency_in_progress' })
      expect(Number(headers['retry-after'])).toBeGreaterThan(0)
    }
    expect(await ticketsOf(subject)).toBe(1)
    expect(await keptKeys(key)).toHaveLength(1)
    expect((await open(key, subject)).text).toBe(done[0]!.text)
  })

  test('the second is told to come back while the first is held up, and gets its answer afterwards', async () => {
    const key = newKey()
    const first = await withClient(async (client) => {
      await client.query('BEGIN; LOCK TABLE ticket IN ACCESS EXCLUSIVE MODE')
      const held = open(key, 'held up')
      await until(() => waitsForLock(api.db))
      expect(await open(key, 'held up')).toMatchObject({ status: 409, body: { code: 'idempotency_in_progress' } })
      await client.query('COMMIT')
      return held
    })
    expect(first.status).toBe(201)
    const again = await open(key, 'held up')
    expect(again).toMatchObject({ status: 201, text: first.text })
    expect(again.headers['idempotency-replayed']).toBe('true')
    expect(await ticketsOf('held up')).toBe(1)
  })

  test('different keys do not wait for each other', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => open(newKey(), 'side by side')))
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(201))
    expect(await ticketsOf('side by side')).toBe(10)
  })
})

describe('a key that was used', () => {
  test('brings the same answer back, byte for byte, with its address', async () => {
    const key = newKey()
    const first = await open(key, 'again')
    const again = await open(key, 'again')
    expect(again.text).toBe(first.text)
    expect(again.status).toBe(first.status)
    expect(again.headers.location).toBe(first.headers.location)
    expect(again.headers['content-type']).toBe(first.headers['content-type'])
    expect(first.headers['idempotency-replayed']).toBeUndefined()
    expect(again.headers['idempotency-replayed']).toBe('true')
  })

  test('belongs to what the body says, not to how it is written', async () => {
    const headers = { 'idempotency-key': newKey(), 'content-type': 'application/json' }
    const post = (body: string) => api.call('POST', '/tickets', { headers, body })
    const first = await post('{"subject":"written","message":"é","priority":"low"}')
    expect(first.status).toBe(201)
    for (const same of [
      '{ "priority" : "low",\n\t"message":"\\u00e9", "subject":"written" }\n',
      '{"message":"é","subject":"writt\\u0065n","priority":"low"}',
    ]) {
      const again = await post(same)
      expect(again).toMatchObject({ status: 201, text: first.text })
      expect(again.headers['idempotency-replayed']).toBe('true')
    }
    for (const other of ['{"subject":"written","message":"é"}', '{"subject":"written","message":"e","priority":"low"}'])
      expect((await post(other)).body.code).toBe('idempotency_key_reused')
    expect(await ticketsOf('written')).toBe(1)
  })

  test('is refused with 422 for another body or another path, and changes nothing', async () => {
    const key = newKey()
    await open(key, 'mine')
    expect(await open(key, 'not mine')).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } })
    const elsewhere = await api.call('POST', '/tokens', { headers: { 'idempotency-key': key }, body: question('mine') })
    expect(elsewhere.status).toBe(422)
    expect(await ticketsOf('not mine')).toBe(0)
  })

  test('belongs to its token: another token of the account may use it for itself', async () => {
    const key = newKey()
    const { body: other } = await api.call('POST', '/tokens', { body: { name: 'other' } })
    const first = await open(key, 'per token')
    const second = await open(key, 'per token', other.token)
    expect(second.status).toBe(201)
    expect(second.headers['idempotency-replayed']).toBeUndefined()
    expect(second.body.id).not.toBe(first.body.id)
  })
})

describe('what is kept under a key', () => {
  test('a 422 is not: the corrected request may use the key', async () => {
    const key = newKey()
    const post = (body: object) => api.call('POST', '/webhooks', { headers: { 'idempotency-key': key }, body })
    expect((await post({ url: 'http://127.0.0.1/', events: ['*'] })).status).toBe(422)
    expect((await post({ url: 'https://hooks.example.com/', events: ['no.such'] })).status).toBe(422)
    expect(await keptKeys(key)).toHaveLength(0)
    expect((await post({ url: 'https://hooks.example.com/', events: ['*'] })).status).toBe(201)
  })

  test.each([
    ['a ticket that does not exist', 404, '/tickets/tkt_none/messages', { message: 'hello' }],
    ['a webhook that does not exist', 404, '/webhooks/whk_none/ping', undefined],
    ['a project that does not exist', 404, '/deployments', { project: 'none' }],
    ['a scope that the token lacks', 403, '/tokens', { name: 'more', scopes: ['operator'] }],
  ])(
    'a refusal for %s is not, whatever its status: it may be otherwise the next time',
    async (_what, status, path, body) => {
      const key = newKey()
      const post = () => api.call('POST', path, { headers: { 'idempotency-key': key }, body })
      expect((await post()).status).toBe(status)
      expect(await keptKeys(key)).toHaveLength(0)
      expect((await post()).headers['idempotency-replayed']).toBeUndefined()
    },
  )

  test('a project that comes after the refusal is deployed with the same key', async () => {
    const headers = { 'idempotency-key': newKey() }
    const deploy = () => api.call('POST', '/deployments', { headers, body: { project: 'late' } })
    expect((await deploy()).status).toBe(404)
    await api.newProject('late')
    expect((await deploy()).status).toBe(201)
  })

  test('a conflict that the work found is', async () => {
    const key = newKey()
    const body = { name: 'site', repo: 'a/b' }
    const first = await api.call('POST', '/projects', { headers: { 'idempotency-key': key }, body })
    expect(first.status).toBe(409)
    expect(await keptKeys(key)).toMatchObject([{ status: 409 }])
    const again = await api.call('POST', '/projects', { headers: { 'idempotency-key': key }, body })
    expect(again).toMatchObject({ status: 409, text: first.text })
    expect(again.headers['idempotency-replayed']).toBe('true')
    expect(again.headers['content-type']).toMatch(/^application\/problem\+json/)
  })

  test.each([
    ['/tokens', { name: 'sealed' }, 'token'],
    ['/webhooks', { url: 'https://hooks.example.com/', events: ['*'] }, 'secret'],
  ])('the secret in the answer of POST %s is sealed, and comes back to its owner alone', async (path, body, field) => {
    const key = newKey()
    const first = await api.call('POST', path, { headers: { 'idempotency-key': key }, body })
    expect(first.status).toBe(201)
    const secret: string = first.body[field]
    const found = await withClient((client) =>
      client.query('SELECT row_to_json(k)::text AS text, sealed FROM idempotency_key k WHERE key = $1', [key]),
    )
    expect(found.rows).toHaveLength(1)
    const { text, sealed } = found.rows[0]
    for (const form of [secret, secret.slice(6), Buffer.from(secret).toString('hex')]) {
      expect(text).not.toContain(form)
      expect(sealed.includes(form)).toBe(false)
    }
    const again = await api.call('POST', path, { headers: { 'idempotency-key': key }, body })
    expect(again.body[field]).toBe(secret)
  })
})

describe('work that is cut off before its commit', () => {
  test.each([
    ['an error', `RAISE EXCEPTION 'trip';`, 500],
    ['a lost connection', 'PERFORM pg_terminate_backend(pg_backend_pid());', 503],
  ])('by %s leaves nothing, and its key is free', async (what, body, status) => {
    const key = newKey()
    const subject = `cut off by ${what}`
    const jobs = await api.db.job.count()
    const events = await api.db.event.count()
    expect((await beforeCommit(body, () => open(key, subject))).status).toBe(status)
    expect(await ticketsOf(subject)).toBe(0)
    expect(await keptKeys(key)).toHaveLength(0)
    expect([await api.db.job.count(), await api.db.event.count()]).toEqual([jobs, events])
    const again = await open(key, subject)
    expect(again.status).toBe(201)
    expect(again.headers['idempotency-replayed']).toBeUndefined()
    expect(await ticketsOf(subject)).toBe(1)
  })

  test('by an answer that cannot be sealed leaves nothing, and its key is free', async () => {
    const key = newKey()
    const { vault } = api.deps
    const { seal } = vault
    vault.seal = () => {
      throw new Error('no key')
    }
    try {
      expect((await open(key, 'unsealed')).status).toBe(500)
    } finally {
      vault.seal = seal
    }
    expect(await ticketsOf('unsealed')).toBe(0)
    expect((await open(key, 'unsealed')).status).toBe(201)
  })
})
