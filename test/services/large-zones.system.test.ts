// Large zone files: the same result as small ones, all or nothing, one at a time, whatever happens meanwhile.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, createConnection } from 'node:net'
import { getPriority } from 'node:os'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { writeZoneFile } from '../../src/dns/zone-files/zone-file-writer.ts'
import { soaTimers } from '../../src/services/dns/zones/zones.ts'
import { zones as zoneArbitrary } from '../dns/zone-arbitraries.ts'
import { type Answer, sharedApi, type TestApi } from '../helpers/api.ts'
import { closed } from '../helpers/closed.ts'
import { waitsForLock } from '../helpers/database.ts'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'

let api: TestApi
const others = new Set<pg.Client>()

beforeAll(async () => {
  api = await sharedApi()
  await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
})
afterEach(async () => {
  for (const client of others) await client.end()
  others.clear()
})
afterAll(() => api.stop())

/** Another connection, as another process has one. */
async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: api.databaseUrl })
  await client.connect()
  others.add(client)
  return client
}

type Owner = { token?: string; project?: string }

let made = 0
async function newZone({ token, project = 'site' }: Owner = {}): Promise<string> {
  const name = `large${++made}.example.com`
  const answer = await api.call('POST', '/domains', { body: { project, name }, ...(token && { token }) })
  expect(answer.status).toBe(201)
  return name
}

async function stranger() {
  const { token } = await api.newAccount()
  await api.call('POST', '/projects', { body: { name: 'theirs', repo: 'acme/site' }, token })
  return { token, project: 'theirs' }
}

const put = (zone: string, body: string | Buffer, query = '', token?: string): Promise<Answer> =>
  api.call('PUT', `/dns/${zone}/zone${query}`, {
    body,
    headers: { 'content-type': 'text/dns', 'if-match': '*' },
    ...(token && { token }),
  })
const fileOf = (count: number, third = 0) =>
  Array.from({ length: count }, (_, n) => `h${n} 300 A 10.${third}.${n >> 8}.${n & 255}\n`).join('')
/** The same records in a file that is too large for the event loop. */
const padded = (text: string) => `${`; ${'x'.repeat(1000)}\n`.repeat(20)}${text}`
const rowsOf = (zone: string) =>
  api.db.dnsRecord.findMany({ where: { domain: { name: zone } }, orderBy: [{ name: 'asc' }, { id: 'asc' }] })
const serialOf = async (zone: string) => (await api.db.domain.findFirstOrThrow({ where: { name: zone } })).serial
const buildFacts = async (zone: string) =>
  (await rowsOf(zone)).map(({ name, type, value, ttl, comment }) => ({ name, type, value, ttl, comment })).sort(byText)
const byText = (one: object, other: object) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)
const eventsOf = (subject: string) => api.db.event.findMany({ where: { subject, type: { startsWith: 'dns.' } } })

/** What an import tells, without what differs between two imports of the same file. */
function told({ body }: Answer) {
  // biome-ignore lint/suspicious/noExplicitAny: a record in any of its forms.
  const bare = ({ id, domain, createdAt, updatedAt, ...record }: any) => record
  const { changes, serial, dryRun, skipped, notes, lines, ...rest } = body
  return {
    ...rest,
    deleted: changes.deleted.map(bare).sort(byText),
    created: changes.created.map(bare).sort(byText),
    updated: changes.updated
      .map(({ before, after }: Record<string, object>) => [bare(before), bare(after)])
      .sort(byText),
    skipped: skipped.length,
    lines: lines.map(
      ({ result, detail }: Record<string, string>) => `${result} ${detail?.replace(/line \d+/, 'line')}`,
    ),
    notes: notes.map(({ detail }: { detail: string }) => detail.replace(/line \d+/, 'line')),
  }
}

describe('the thread', () => {
  test('does to a zone what the event loop does to it, and a dry run tells the same before', async () => {
    const [small, large] = [await newZone(), await newZone()]
    const textOf = (zone: string, records: Parameters<typeof writeZoneFile>[0]['records']) =>
      writeZoneFile({
        zone,
        serial: 1,
        nameservers: ['ns1.example.net'],
        soa: { mname: 'ns1.example.net', rname: 'x.example.net', ...soaTimers },
        records,
      })
    await fc.assert(
      fc.asyncProperty(zoneArbitrary, async (records) => {
        const [one, other] = [textOf(small, records), padded(textOf(large, records))]
        const dry = await put(large, other, '?dryRun=true')
        const answers = [await put(small, one), await put(large, other)]
        expect(answers.map(({ status }) => status)).toEqual(records.length > 0 ? [200, 200] : expect.anything())
        if (answers[0]!.status !== 200) return
        expect(told(answers[1]!)).toEqual(told(answers[0]!))
        expect(told(dry)).toEqual(told(answers[1]!))
        expect(await buildFacts(large)).toEqual(await buildFacts(small))
        expect(await serialOf(large)).toBe(await serialOf(small))
      }),
      { numRuns: 25 },
    )
  })

  test('names every line that cannot be imported, refuses what is no UTF-8 or empty of records, and stores nothing', async () => {
    const zone = await newZone()
    await put(zone, 'old 300 A 192.0.2.1\n')
    const before = await rowsOf(zone)
    const bad = await put(zone, padded('a A 192.0.2.1\nb A nonsense\na CNAME c.example.net.\n'))
    expect(bad.status).toBe(422)
    expect(bad.body.errors.map(({ pointer }: { pointer: string }) => pointer).sort()).toEqual([
      '#/lines/22',
      '#/lines/23',
    ])
    expect((await put(zone, Buffer.concat([Buffer.from(padded('')), Buffer.from([0xff, 0xfe])]))).body.errors).toEqual([
      expect.objectContaining({ code: 'bad_format' }),
    ])
    expect((await put(zone, padded(''))).body.errors).toMatchObject([{ code: 'no_records' }])
    expect((await put('absent.example.com', padded('x'))).status).toBe(404)
    expect(await rowsOf(zone)).toEqual(before)
    expect(await serialOf(zone)).toBe(2)
  })

  test('exports a large zone, which fills another one, and knows a copy that is current', async () => {
    const [from, to] = [await newZone(), await newZone()]
    await put(from, fileOf(3_000))
    const { text, headers } = await api.call('GET', `/dns/${from}/zone`)
    expect(text.match(/^h\d+ /gm)).toHaveLength(3_000)
    const known = { 'if-none-match': headers.etag! }
    expect((await api.call('GET', `/dns/${from}/zone`, { headers: known })).status).toBe(304)
    expect((await put(to, text.replaceAll(from, to))).body).toMatchObject({ created: 3_000, serial: 2 })
    expect((await put(from, text)).body).toMatchObject({ unchanged: 3_000, created: 0, serial: 2 })
  })

  test('writes one event for all changes, however many', async () => {
    const zone = await newZone()
    await put(zone, fileOf(1_001))
    const { body } = await put(zone, fileOf(2))
    expect(body).toMatchObject({ deleted: 999, unchanged: 2, serial: 3, truncated: true })
    expect(body.changes.deleted).toHaveLength(500)
    expect(await eventsOf(zone)).toMatchObject([
      { type: 'dns.zone.imported', data: { domain: zone, created: 1_001, updated: 0, deleted: 0, serial: 2 } },
      {
        type: 'dns.zone.imported',
        data: { domain: zone, created: 0, deleted: 999, unchanged: 2, skipped: 0, serial: 3 },
      },
    ])
    expect(await eventsOf(body.changes.deleted[0].id)).toEqual([])
    const list = await api.call('GET', '/events?type=dns.zone.imported')
    expect(list.body.events).toContainEqual(expect.objectContaining({ subject: zone }))
  })

  test.skipIf(process.platform !== 'linux')('works behind everybody else, in the database too', async () => {
    await put(await newZone(), fileOf(1_001))
    const { rows } = await (await connect()).query<{ pid: number }>(
      'SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
    const priorities = rows.map(({ pid }) => getPriority(pid))
    expect(new Set(priorities)).toEqual(new Set([getPriority(), 10]))
  })
})

describe('hostile files', () => {
  const sizes = 4 * 1024 * 1024
  test.each([
    ['one entry of a million fields', `a TXT ( ${'x '.repeat(sizes / 2)})\n`, 422],
    ['a string of many MiB', `a TXT "${'x'.repeat(sizes)}"\n`, 422],
    ['a parenthesis that is never closed', `a TXT (\n${'"x"\n'.repeat(sizes / 4)}`, 422],
    ['an entry of a million comments', `a TXT (${';c\n'.repeat(sizes / 4)} x )\n`, 200],
    ['a million lines of another zone', `k A 192.0.2.1\n${'x.org. A 192.0.2.1\n'.repeat(sizes / 19)}`, 200],
    ['the same record a hundred thousand times', 'a A 192.0.2.1\n'.repeat(100_000), 200],
    ['names that are generated without end', '$GENERATE 0-2147483647 a A 192.0.2.1\n'.repeat(100), 422],
    ['octets of no text', Buffer.alloc(sizes, 0xff), 422],
    ['nothing that is a zone file', `${'{"a":[1,2,3]}\n'.repeat(sizes / 14)}`, 422],
  ])('%s', async (_name, text, status) => {
    const zone = await newZone()
    const answer = await put(zone, text, '?dryRun=true')
    expect(answer.status, answer.text.slice(0, 300)).toBe(status)
    expect(answer.text.length).toBeLessThan(400_000)
  })

  test('more than 16 MiB is refused, also if the length is not told before', async () => {
    const zone = await newZone()
    const { port } = await listening()
    const status = await new Promise<number>((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port,
          method: 'PUT',
          path: `/api/dns/${zone}/zone`,
          headers: { authorization: `Bearer ${api.token}`, 'content-type': 'text/dns', 'if-match': '*' },
        },
        (response) => {
          resolve(response.resume().statusCode!)
          sent.destroy()
        },
      )
      sent.on('error', reject)
      for (let mib = 0; mib < 16; mib++) sent.write(Buffer.alloc(1024 * 1024, ';'))
      // One byte too many, and no end: what followed could meet a connection that is closed already.
      sent.write(';')
    })
    expect(status).toBe(413)
    expect((await put(zone, fileOf(1_000))).status).toBe(200)
  })
})

/** The app on a socket, for clients that come and go. */
async function listening(): Promise<AddressInfo> {
  await api.listen()
  return api.app.server.address() as AddressInfo
}

/** Locks a record that an import deletes late, so that the import stops in the midst of its writing. */
async function holdLastRecord(zone: string): Promise<pg.Client> {
  const rows = await rowsOf(zone)
  const client = await connect()
  await client.query('BEGIN')
  await client.query('SELECT id FROM dns_record WHERE id = $1 FOR UPDATE', [rows.at(-1)!.id])
  return client
}

describe('at the same time', () => {
  test('an account imports one large file, and another account imports as well', async () => {
    const owner = await stranger()
    const [mine, second, theirs] = [await newZone(), await newZone(), await newZone(owner)]
    const [one, other, foreign] = await Promise.all([
      put(mine, fileOf(4_000)),
      put(second, fileOf(4_000)),
      put(theirs, fileOf(4_000), '', owner.token),
    ])
    expect([one!.status, other!.status].sort()).toEqual([200, 409])
    const refused = one!.status === 409 ? one! : other!
    expect(refused.body).toMatchObject({ code: 'import_in_progress' })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect(foreign!.status).toBe(200)
    // A small one is not in the way of anybody.
    const both = await Promise.all([put(mine, fileOf(4_001)), put(await newZone(), 'a A 192.0.2.1\n')])
    expect(both.map(({ status }) => status)).toEqual([200, 200])
  })

  test('another process that imports for the account counts too', async () => {
    const zone = await newZone()
    const client = await connect()
    await client.query(`SELECT pg_advisory_lock(hashtextextended('zone import ' || $1, 0))`, [api.accountId])
    const refused = await put(zone, padded('a A 192.0.2.1\n'))
    expect(refused.body).toMatchObject({ code: 'import_in_progress' })
    await client.end()
    others.delete(client)
    await until(async () => (await put(zone, padded('a A 192.0.2.1\n'))).status === 200)
  })

  test('records that are made beside an import are either in the zone or among those it deleted', async () => {
    const zone = await newZone()
    await put(zone, fileOf(3_000))
    const importing = put(zone, fileOf(3_000, 1))
    let over = false
    const ended = importing.finally(() => {
      over = true
    })
    let posted = 0
    while (!over) {
      const body = { type: 'TXT', name: `extra${posted}`, value: 'x' }
      expect((await api.call('POST', `/dns/${zone}/records`, { body })).status).toBe(201)
      posted++
    }
    const { status, body } = await ended
    expect(status).toBe(200)
    const extra = (await rowsOf(zone)).filter(({ name }) => name.startsWith('extra'))
    expect(body).toMatchObject({ created: 3_000, unchanged: 0 })
    expect(body.deleted - 3_000 + extra.length).toBe(posted)
    expect(await serialOf(zone)).toBe(1 + 1 + 1 + posted)
  })

  test('a zone that changed after the import looked at it is looked at again', async () => {
    const zone = await newZone()
    await put(zone, fileOf(1_500))
    const { id } = await api.db.domain.findFirstOrThrow({ where: { name: zone } })
    const client = await connect()
    await client.query('BEGIN')
    await client.query('SELECT 1 FROM domain WHERE id = $1 FOR NO KEY UPDATE', [id])
    const importing = put(zone, fileOf(1_500, 1))
    await until(() => waitsForLock(api.db))
    await client.query(
      `INSERT INTO dns_record (id, domain_id, type, name, value, ttl, created_at, updated_at)
       VALUES ('rec_late', $1, 'A', 'h0', '10.1.0.0', 300, now(), now())`,
      [id],
    )
    await client.query('UPDATE domain SET serial = serial + 1 WHERE id = $1', [id])
    await client.query('COMMIT')
    // The record that came late is one of the file's, and keeps its id.
    expect((await importing).body).toMatchObject({ created: 1_499, deleted: 1_500, unchanged: 1, serial: 4 })
    expect(await api.db.dnsRecord.count({ where: { id: 'rec_late' } })).toBe(1)
  })
})

describe('what is being received', () => {
  test('is bounded over all accounts, and free again when it is discarded', () => {
    const work = api.deps.zoneWork
    const chunk = new Uint8Array(16 * 1024 * 1024)
    const uploads = [1, 2, 3, 4].map((n) => work.upload(`acc_${n}`))
    for (const upload of uploads) upload.push(chunk)
    const fifth = work.upload('acc_5')
    expect(() => fifth.push(chunk)).toThrow(expect.objectContaining({ code: 'overloaded' }))
    expect(() => work.upload('acc_1').push(chunk)).toThrow(expect.objectContaining({ code: 'import_in_progress' }))
    expect(() => work.upload('acc_6').push(new Uint8Array(chunk.length + 1))).toThrow(
      expect.objectContaining({ code: 'body_too_large' }),
    )
    for (const upload of [...uploads, fifth]) upload.discard()
    const again = work.upload('acc_1')
    again.push(chunk)
    again.discard()
    again.discard()
  })

  test('is in nobody’s way when its client goes away, also behind another request on the same connection', async () => {
    const zone = await newZone()
    const { port } = await listening()
    const file = fileOf(1_000)
    const head = `PUT /api/dns/${zone}/zone?dryRun=true HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${api.token}\r\ncontent-type: text/dns\r\n`
    const whole = `${head}content-length: ${file.length}\r\n\r\n${file}`
    const half = `${head}content-length: ${file.length * 2}\r\n\r\n${file}`
    for (const sent of [half, whole, whole + whole, whole + half]) {
      const socket = createConnection(port, '127.0.0.1')
      await new Promise((resolve) => socket.write(sent, resolve))
      // The server has it when it says so, or soon; either way it ends.
      socket.destroy()
      await closed(socket)
      await until(async () => (await put(zone, file, '?dryRun=true')).status === 200)
    }
  })

  test('is in nobody’s way once it is refused', async () => {
    const zone = await newZone()
    expect((await put(zone, fileOf(1_000), '?dryRun=perhaps')).status).toBe(422)
    expect((await put(`${zone}.absent`, fileOf(1_000))).status).toBe(404)
    expect((await put(zone, fileOf(1_000))).status).toBe(200)
  })
})

describe('all or nothing', () => {
  test('nobody sees a part of an import, and a client that goes away stops it', async () => {
    const zone = await newZone()
    await put(zone, fileOf(2_500))
    const before = await rowsOf(zone)
    const client = await holdLastRecord(zone)
    const { port } = await listening()
    const sent = request({
      host: '127.0.0.1',
      port,
      method: 'PUT',
      path: `/api/dns/${zone}/zone`,
      headers: { authorization: `Bearer ${api.token}`, 'content-type': 'text/dns', 'if-match': '*' },
    })
    sent.on('error', () => {})
    sent.end(fileOf(2_500, 1))
    await until(() => waitsForLock(api.db))
    // Two thousand records are deleted by now, for the import alone.
    expect(await rowsOf(zone)).toEqual(before)
    sent.destroy()
    await until(async () => (await connectionsOf()) === 0)
    await client.query('COMMIT')
    await until(async () => (await put(zone, padded('a A 192.0.2.1\n'), '?dryRun=true')).status === 200)
    expect(await rowsOf(zone)).toEqual(before)
    expect(await serialOf(zone)).toBe(2)
  })

  const children = new Set<ChildProcess>()
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
  })

  test('a process that dies by kill -9 in the midst leaves the zone as it was, and nothing locked', async () => {
    const zone = await newZone()
    await put(zone, fileOf(2_500))
    const before = await rowsOf(zone)
    const client = await holdLastRecord(zone)
    const port = await freePort()
    const child = spawn(process.execPath, ['dist/src/cli.js', 'serve', '--roles', 'api'], {
      stdio: 'ignore',
      env: {
        PATH: process.env.PATH,
        DATABASE_URL: api.databaseUrl,
        DATA_DIR: api.config.dataDir,
        PORT: String(port),
        METRICS_PORT: '0',
        SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
      },
    })
    children.add(child)
    const address = `http://127.0.0.1:${port}`
    await until(
      () =>
        fetch(`${address}/healthz`).then(
          ({ ok }) => ok,
          () => false,
        ),
      60_000,
    )
    const headers = { authorization: `Bearer ${api.token}`, 'content-type': 'text/dns', 'if-match': '*' }
    const importing = fetch(`${address}/api/dns/${zone}/zone`, { method: 'PUT', headers, body: fileOf(2_500, 1) })
    const failed = importing.then(
      () => false,
      () => true,
    )
    await until(() => waitsForLock(api.db))
    child.kill('SIGKILL')
    await once(child, 'exit')
    children.delete(child)
    expect(await failed).toBe(true)
    await client.query('COMMIT')
    await until(async () => (await put(zone, padded('a A 192.0.2.1\n'), '?dryRun=true')).status === 200)
    expect(await rowsOf(zone)).toEqual(before)
    expect(await serialOf(zone)).toBe(2)
    expect((await put(zone, fileOf(2_500, 1))).body).toMatchObject({ created: 2_500, deleted: 2_500, serial: 3 })
  })
})

function connectionsOf(): Promise<number> {
  return new Promise((resolve, reject) =>
    api.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )
}
