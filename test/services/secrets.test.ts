import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createSigner } from '../../src/engines/delivery/message.ts'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { createVault, keyIdOf, placeOf } from '../../src/platform/secrets/secrets.ts'
import { type Build, openVariables } from '../../src/services/deployments/builds.ts'
import { countSealed, isComplete, rotateSecrets } from '../../src/services/secrets/rotation.ts'
import { admitKey, secretsReadiness, WrongKey } from '../../src/services/secrets/sealing-keys.ts'
import { createDatabase } from '../helpers/database.ts'
import { sealUnbound } from '../helpers/unbound.ts'

const keys = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer]
const [first, second, third] = keys
const [firstId, secondId] = keys.map(keyIdOf) as [string, string, string]

let database: Awaited<ReturnType<typeof createDatabase>>
let db: Database
let client: pg.Client
beforeAll(async () => {
  database = await createDatabase()
  db = openDatabase(database.url, 10)
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
})
beforeEach(async () => {
  await client.query(
    'TRUNCATE account, users, idempotency_key, certificate, acme_account, acme_order, development_ca, sealing_key, label CASCADE',
  )
})
afterAll(async () => {
  await client.end()
  await closeDatabase(db)
  await database.drop()
})

/** A row in every table that has sealed values; `seal` gets the place and what is sealed there. */
async function fill(seal: (plain: string, place: string) => Buffer, tag = 'a'): Promise<void> {
  const [account, project, webhook, certificate] = [`acc_${tag}`, `prj_${tag}`, `whk_${tag}`, `crt_${tag}`]
  const run = (text: string, ...values: unknown[]) => client.query(text, values)
  await run(`INSERT INTO account (id, name, created_at) VALUES ($1, $1, now())`, account)
  await run(
    `INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, spa_fallback,
       clean_urls, auto_deploy, created_at, updated_at)
     VALUES ($1, $2, $1, 'static', 'x/y', 'local-1', $3, 'main', false, true, true, now(), now())`,
    project,
    account,
    `label${tag}`,
  )
  await run(
    `INSERT INTO variable (project_id, key, target, sealed, created_at, updated_at)
     SELECT $1, 'KEY_' || n - n % 3, (ARRAY['preview', 'production', 'all'])[1 + n % 3], sealed, now(), now()
     FROM unnest($2::int[], $3::bytea[]) AS v(n, sealed)`,
    project,
    // Batches of 100 end between the targets of a key.
    Array.from({ length: 120 }, (_, n) => n),
    Array.from({ length: 120 }, (_, n) => seal(`value ${n}`, placeOf.variable(project, `KEY_${n - (n % 3)}`))),
  )
  await run(
    `INSERT INTO webhook (id, account_id, url, events, active, secret, old_secret, created_at, updated_at)
     VALUES ($1, $2, 'https://x.test', '{*}', true, $3, $4, now(), now())`,
    webhook,
    account,
    seal('webhook', placeOf.webhook(webhook)),
    seal('old webhook', placeOf.webhook(webhook)),
  )
  await run(
    `INSERT INTO push_hook (project_id, secret, old_secret, status_token, created_at, updated_at)
     VALUES ($1, $2, $3, $4, now(), now())`,
    project,
    seal('hook', placeOf.pushHook(project)),
    seal('old hook', placeOf.pushHook(project)),
    seal('status', placeOf.statusToken(project)),
  )
  await run(
    `INSERT INTO users (id, email, name, created_at, totp_secret) VALUES ($1, $1, '', now(), $2)`,
    `usr_${tag}`,
    seal('totp', placeOf.totp(`usr_${tag}`)),
  )
  await run(
    `INSERT INTO idempotency_key (token_id, key, fingerprint, status, sealed, created_at)
     VALUES ($1, 'k', '', 200, $2, now())`,
    `tok_${tag}`,
    seal('answer', placeOf.answer(`tok_${tag}`, 'k')),
  )
  await run(
    `INSERT INTO certificate (id, names, chain, key, issuer, serial, not_before, not_after, renew_at, directory)
     VALUES ($1, '{x.test}', '', $2, '', '', now(), now(), now(), '')`,
    certificate,
    seal('certificate', placeOf.certificate(certificate)),
  )
  await run(
    `INSERT INTO acme_account (directory, url, key) VALUES ($1, '', $2)`,
    `https://ca/${tag}`,
    seal('acme account', placeOf.acmeAccount(`https://ca/${tag}`)),
  )
  await run(
    `INSERT INTO acme_order (subject, directory, names, key) VALUES ($1, '', '{}', $2)`,
    `acc ${tag}`,
    seal('acme order', placeOf.acmeOrder(`acc ${tag}`)),
  )
  await run(
    `INSERT INTO development_ca (id, certificate, key) VALUES ($1, '', $2)`,
    `root ${tag}`,
    seal('development CA', placeOf.developmentCa(`root ${tag}`)),
  )
}

/** Every sealed value of the database, by the columns that a type of PostgreSQL names. */
async function allOpened(key: Buffer, tag = 'a'): Promise<string[]> {
  const vault = createVault(key)
  const open = (sealed: Uint8Array, place: string) => vault.open(sealed, place).toString()
  const variables = await db.variable.findMany({ where: { projectId: `prj_${tag}` }, orderBy: { key: 'asc' } })
  const webhook = await db.webhook.findUniqueOrThrow({ where: { id: `whk_${tag}` } })
  const hook = await db.pushHook.findUniqueOrThrow({ where: { projectId: `prj_${tag}` } })
  const user = await db.user.findUniqueOrThrow({ where: { id: `usr_${tag}` } })
  const answer = await db.idempotencyKey.findFirstOrThrow({ where: { tokenId: `tok_${tag}` } })
  const certificate = await db.certificate.findUniqueOrThrow({ where: { id: `crt_${tag}` } })
  const account = await db.acmeAccount.findUniqueOrThrow({ where: { directory: `https://ca/${tag}` } })
  const order = await db.acmeOrder.findUniqueOrThrow({ where: { subject: `acc ${tag}` } })
  const root = await db.developmentCa.findUniqueOrThrow({ where: { id: `root ${tag}` } })
  return [
    ...variables.map((row) => open(row.sealed, placeOf.variable(row.projectId, row.key))),
    open(webhook.secret, placeOf.webhook(webhook.id)),
    open(webhook.oldSecret!, placeOf.webhook(webhook.id)),
    open(hook.secret, placeOf.pushHook(hook.projectId)),
    open(hook.oldSecret!, placeOf.pushHook(hook.projectId)),
    open(hook.statusToken!, placeOf.statusToken(hook.projectId)),
    open(user.totpSecret!, placeOf.totp(user.id)),
    open(answer.sealed, placeOf.answer(answer.tokenId, answer.key)),
    open(certificate.key, placeOf.certificate(certificate.id)),
    open(account.key, placeOf.acmeAccount(account.directory)),
    open(order.key!, placeOf.acmeOrder(order.subject)),
    open(root.key, placeOf.developmentCa(root.id)),
  ]
}

const silent = () => {}
const values = 131

describe('rotation', () => {
  test('re-seals what the version before sealed, and what another key sealed, and then lets the old key go', async () => {
    await fill((plain) => sealUnbound(first, plain), 'a')
    await admitKey(db, createVault(first))
    const before = createVault(first)
    await fill((plain, place) => before.seal(plain, place), 'b')

    const both = createVault(second, [first])
    expect(await admitKey(db, both)).toEqual({ isNew: true, missing: [] })
    expect(await countSealed(db, both)).toEqual(
      expect.arrayContaining([
        { keyId: null, values, known: true },
        { keyId: firstId, values, known: true },
      ]),
    )
    const rotation = await rotateSecrets(db, both, silent)
    expect(isComplete(rotation)).toBe(true)
    expect(rotation.dropped).toEqual([firstId])
    expect(rotation.columns.reduce((sum, { resealed }) => sum + resealed, 0)).toBe(2 * values)
    expect(await countSealed(db, both)).toEqual([{ keyId: secondId, values: 2 * values, known: true }])
    for (const tag of ['a', 'b']) {
      const opened = await allOpened(second, tag)
      expect(new Set(opened).size).toBe(values)
      expect(opened).toContain('value 119')
    }
    // The old key is not needed any more, and nothing is left to do.
    const alone = createVault(second)
    expect(await admitKey(db, alone)).toEqual({ isNew: false, missing: [] })
    const again = await rotateSecrets(db, alone, silent)
    expect(again.columns.every(({ resealed }) => resealed === 0)).toBe(true)
  })

  test('covers every column of bytes but those that hold no secret', async () => {
    const found = await client.query<{ name: string }>(
      `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
       WHERE table_schema = 'public' AND data_type = 'bytea' ORDER BY 1`,
    )
    const { columns } = await rotateSecrets(db, createVault(first), silent)
    // Hashes, signatures and public keys, and the canary, which is made anew with each key.
    const hashes = [
      ...['deploy_hook', 'device_login', 'invitation', 'recovery_code'],
      ...['session', 'sign_in_link', 'sign_in_step', 'token'],
    ]
    const others = [
      ...['dns_update.mac', 'idempotency_key.fingerprint', 'push.digest', 'sealing_key.canary'],
      ...['passkey.credential_id', 'passkey.public_key', 'invitation.mail_hash', 'zone_key.public_key'],
      ...['zone_signature.fingerprint', 'zone_signature.name', 'zone_signature.octets', 'device_login.user_hash'],
      ...hashes.map((table) => `${table}.hash`),
    ]
    expect(found.rows.map(({ name }) => name)).toEqual([...columns.map(({ name }) => name), ...others].sort())
  })

  test('is done once by several at once, and never undoes what somebody changes meanwhile', async () => {
    const before = createVault(first)
    await admitKey(db, before)
    await fill((plain, place) => before.seal(plain, place))
    const both = createVault(second, [first])
    const place = placeOf.variable('prj_a', 'KEY_117')
    const change = async () => {
      const sealed = Uint8Array.from(both.seal('changed', place))
      await db.variable.update({
        where: { projectId_key_target: { projectId: 'prj_a', key: 'KEY_117', target: 'all' } },
        data: { sealed },
      })
    }
    const results = await Promise.all([
      ...Array.from({ length: 4 }, () => rotateSecrets(db, both, silent)),
      change().then(() => null),
    ])
    const resealed = results.reduce(
      (sum, result) => sum + (result?.columns.reduce((all, column) => all + column.resealed, 0) ?? 0),
      0,
    )
    expect([values - 1, values]).toContain(resealed)
    const opened = await allOpened(second)
    expect(opened).toContain('changed')
    expect(opened).not.toContain('value 119')
  })

  test('leaves out what somebody has locked, and says that it is not done', async () => {
    const before = createVault(first)
    await admitKey(db, before)
    await fill((plain, place) => before.seal(plain, place))
    await client.query(`BEGIN; SELECT 1 FROM certificate FOR UPDATE`)
    const both = createVault(second, [first])
    await admitKey(db, both)
    const held = await rotateSecrets(db, both, silent)
    expect(isComplete(held)).toBe(false)
    expect(held.columns.find(({ busy }) => busy > 0)).toMatchObject({ name: 'certificate.key', busy: 1 })
    await client.query('ROLLBACK')
    expect(await rotateSecrets(db, both, silent)).toMatchObject({ dropped: [firstId] })
  })

  test('names what no key opens, goes on with the rest, and keeps the old key', async () => {
    const before = createVault(first)
    await admitKey(db, before)
    await fill((plain, place) => before.seal(plain, place))
    await db.variable.updateMany({
      where: { key: 'KEY_6', target: 'production' },
      data: { sealed: Uint8Array.from(createVault(third).seal('lost', placeOf.variable('prj_a', 'KEY_6'))) },
    })
    const both = createVault(second, [first])
    await admitKey(db, both)
    const rotation = await rotateSecrets(db, both, silent)
    expect(isComplete(rotation)).toBe(false)
    expect(rotation.dropped).toEqual([])
    expect(rotation.columns.find(({ name }) => name === 'variable.sealed')).toEqual({
      name: 'variable.sealed',
      resealed: 119,
      unopened: ['prj_a KEY_6 production'],
      busy: 0,
    })
    expect(await db.sealingKey.count()).toBe(2)
  })
})

describe('a value that was copied to another row', () => {
  const vault = createVault(first)

  test('does not open there: not for a build', async () => {
    await fill((plain, place) => vault.seal(plain, place), 'a')
    await fill((plain, place) => vault.seal(plain, place), 'b')
    const build = { projectId: 'prj_b', production: false } as Build
    expect(await openVariables(db, vault, build)).toMatchObject({ KEY_0: 'value 0' })
    await client.query(`UPDATE variable t SET sealed = f.sealed FROM variable f
      WHERE t.project_id = 'prj_b' AND t.key = 'KEY_0' AND f.project_id = 'prj_a' AND f.key = 'KEY_0'
        AND t.target = f.target`)
    await expect(openVariables(db, vault, build)).rejects.toThrow(/copied/)
  })

  test('nor to sign with, not even if it was opened in its own row a moment ago', () => {
    const secret = `whsec_${Buffer.alloc(32).toString('base64')}`
    const secrets = [vault.seal(secret, placeOf.webhook('whk_a')).toString('base64')]
    const sign = createSigner(vault)
    expect(sign({ webhookId: 'whk_a', secrets }, 'text')).toMatch(/^v1,/)
    expect(() => sign({ webhookId: 'whk_b', secrets }, 'text')).toThrow(/copied/)
  })
})

describe('a key', () => {
  test('is admitted by the first start, and no other one after it', async () => {
    expect(await admitKey(db, createVault(first))).toEqual({ isNew: true, missing: [] })
    expect(await admitKey(db, createVault(first))).toEqual({ isNew: false, missing: [] })
    const refused = admitKey(db, createVault(second))
    await expect(refused).rejects.toThrow(WrongKey)
    await expect(refused).rejects.toThrow(new RegExp(`${secondId}.*${firstId}.*SECRETS_KEY_OLD`))
    expect(await db.sealingKey.count()).toBe(1)
  })

  test('is one, however many start for the first time at once', async () => {
    const starts = [first, second, first, second, first, second].map((key) => admitKey(db, createVault(key)))
    const results = await Promise.allSettled(starts)
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(WrongKey)
    }
    expect(await db.sealingKey.count()).toBe(1)
  })

  test('is refused on a database of the version before, where it opens nothing', async () => {
    await fill((plain) => sealUnbound(first, plain))
    await expect(admitKey(db, createVault(second))).rejects.toThrow(WrongKey)
    expect(await db.sealingKey.count()).toBe(0)
    expect(await admitKey(db, createVault(second, [first]))).toMatchObject({ isNew: true })
  })

  test('that is dropped too early is named by readiness, until everything is sealed with another and it is restarted', async () => {
    const before = createVault(first)
    await admitKey(db, before)
    await fill((plain, place) => before.seal(plain, place))
    const both = createVault(second, [first])
    await admitKey(db, both)
    const alone = createVault(second)
    const check = secretsReadiness(db, await admitKey(db, alone))
    expect(await check()).toMatch(new RegExp(`${firstId}.*SECRETS_KEY_OLD`))
    expect(isComplete(await rotateSecrets(db, alone, silent))).toBe(false)
    expect(await check()).not.toBeNull()
    await rotateSecrets(db, both, silent)
    expect(await check()).toMatch(/restart/)
    expect(await secretsReadiness(db, await admitKey(db, alone))()).toBeNull()
    // A process that was not restarted yet hears of the new key later, and is not turned off by it.
    expect(await secretsReadiness(db, { isNew: false, missing: [] })()).toBeNull()
  })
})
