// A database with accounts that each have a token, a subject to write about, and a webhook.
import pg from 'pg'
import { migrate } from '../../prisma/migrate.ts'
import type { EmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { newId } from '../../src/platform/ids.ts'
import { createVault, hashToken, newToken, placeOf } from '../../src/platform/secrets/secrets.ts'

export type Seeded = { url: string; client: pg.Client; tokens: string[] }

export async function seed(postgres: EmbeddedPostgres, secretsKey: Buffer, receivers: string[]): Promise<Seeded> {
  const admin = new pg.Client({ connectionString: postgres.url() })
  await admin.connect()
  await admin.query('CREATE DATABASE events')
  await admin.end()
  const url = postgres.url('events')
  await migrate(url)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const vault = createVault(secretsKey)
  const tokens: string[] = []
  for (const [index, receiver] of receivers.entries()) {
    const accountId = newId('acc')
    const token = newToken()
    tokens.push(token)
    await client.query(`INSERT INTO account (id, name, created_at) VALUES ($1, $2, now())`, [
      accountId,
      `bench-${index}`,
    ])
    await client.query(
      `INSERT INTO token (id, account_id, name, scopes, project_ids, prefix, hash, created_at)
       VALUES ($1, $2, 'bench', '{*}', '{}', $3, $4, now())`,
      [newId('tok'), accountId, token.slice(0, 8), hashToken(token)],
    )
    const webhookId = newId('whk')
    const secret = vault.seal(`whsec_${Buffer.alloc(32, index).toString('base64')}`, placeOf.webhook(webhookId))
    await client.query(
      `INSERT INTO webhook (id, account_id, url, events, active, secret, created_at, updated_at)
       VALUES ($1, $2, $3, '{*}', false, $4, now(), now())`,
      [webhookId, accountId, receiver, secret],
    )
  }
  return { url, client, tokens }
}

/** Runs between slices, so that the leftovers of one aren't swept during the next. */
export async function sweep(client: pg.Client): Promise<void> {
  await client.query('TRUNCATE delivery_attempt, delivery, event, ticket, ticket_message')
  await client.query('VACUUM webhook, webhook_lane, token')
  await client.query('CHECKPOINT')
}
