// The content of the whole database in one line of text, to tell whether a request left anything behind.
import type { TestApi } from '../helpers/api.ts'

// A row that is new or changed bears the number of its transaction; one that is gone is missing in the count.
const version = 'max(t.xmin::text::bigint)'
// The time a token was last used is no trace of a refused request: it is written in the background.
const ofTokens = `concat_ws('/', count(t.revoked_at), max(t.revoked_at), count(t.expires_at), max(t.expires_at))`

function tableSql(table: string): string {
  return `(SELECT count(*) || ':' || coalesce((${table === 'token' ? ofTokens : version})::text, '') FROM "${table}" t)`
}

export type Snapshot = () => Promise<Record<string, string>>

export async function createSnapshot(api: TestApi): Promise<Snapshot> {
  const tables = await api.db.$queryRawUnsafe<{ name: string }[]>(
    `SELECT tablename::text AS name FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE '\\_%' ORDER BY 1`,
  )
  const columns = tables.map(({ name }) => `${tableSql(name)} AS "${name}"`)
  return async () => (await api.db.$queryRawUnsafe<Record<string, string>[]>(`SELECT ${columns.join(', ')}`))[0]!
}
