// A generator for `prisma generate`: writes the columns of every model, from which statements derive their lists.
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'

type Field = {
  name: string
  dbName: string | null
  kind: string
  type: string
  isList: boolean
  isRequired: boolean
  nativeType: [string, string[]] | null
  default?: unknown
}
type Request = {
  id: number
  method: string
  params: { dmmf: { datamodel: { models: { name: string; fields: Field[] }[] } } }
}

const output = join(import.meta.dirname, '../src/generated/columns.ts')

/** As PostgreSQL writes them; migrations.test.ts compares the schema with the database. */
const sqlTypes: Record<string, string> = {
  String: 'text',
  Int: 'integer',
  BigInt: 'bigint',
  Boolean: 'boolean',
  Bytes: 'bytea',
  Json: 'jsonb',
  DateTime: 'timestamp with time zone',
}

/** What a new row has if nothing is said; left out where the database computes it. */
function initialOf({ type, isRequired, default: value }: Field) {
  if (!isRequired) return { initial: null }
  const isPlain = Array.isArray(value) || (typeof value !== 'object' && ['Boolean', 'Int', 'String'].includes(type))
  return isPlain ? { initial: value } : {}
}

function columnOf(field: Field) {
  const { name, dbName, type, isList, isRequired, nativeType } = field
  const native = nativeType && { Json: 'json', Date: 'date', SmallInt: 'smallint' }[nativeType[0]]
  const sqlType = `${native ?? sqlTypes[type]}${isList ? '[]' : ''}`
  return { column: dbName ?? name, type: sqlType, nullable: !isRequired, ...initialOf(field) }
}

async function write({ dmmf }: Request['params']): Promise<void> {
  const models = dmmf.datamodel.models.map(({ name, fields }) => {
    const scalars = fields.filter(({ kind }) => kind === 'scalar')
    return [name, Object.fromEntries(scalars.map((field) => [field.name, columnOf(field)]))]
  })
  await mkdir(dirname(output), { recursive: true })
  await writeFile(output, `export const columns = ${JSON.stringify(Object.fromEntries(models), null, 2)} as const\n`)
}

// Prisma asks on stdin and reads the answers from stderr.
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params }: Request = JSON.parse(line)
  const manifest = { prettyName: 'columns', defaultOutput: output }
  const result = method === 'getManifest' ? { manifest } : await write(params)
  process.stderr.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: result ?? null })}\n`)
}
