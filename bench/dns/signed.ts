// Signed zones: keys for the benchmark's zones, and the signed zones as files for the peers.
import { execFile } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { createVault } from '../../src/platform/secrets/secrets.ts'
import { createZoneKey } from '../../src/services/dns/index.ts'
import { findProgram } from '../programs.ts'
import { zoneName } from './zones.ts'

const execute = promisify(execFile)

const secretsKey = Buffer.alloc(32, 7)
const transferKey = { name: 'transfer.test', secret: Buffer.alloc(32, 5).toString('base64') }

/** What a nameserver needs to open the keys and to transfer its zones. */
export const signingEnvironment = {
  SECRETS_KEY: secretsKey.toString('base64'),
  NAMESERVER_TSIG: `${transferKey.name}:${transferKey.secret}`,
}

/** Creates a key for every zone of a database that isn't served yet. */
export async function addKeys(url: string): Promise<void> {
  const vault = createVault(secretsKey)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ id: string }>('SELECT id FROM domain')
    const use = { published: true, signing: true, announced: true }
    const keys = rows.map(({ id }) => createZoneKey(vault, id, use))
    await client.query('SET session_replication_role = replica')
    await client.query(
      `INSERT INTO zone_key (id, domain_id, tag, public_key, private_key, published, signing, announced, created_at)
       SELECT k.*, true, true, true, now()
       FROM unnest($1::text[], $2::text[], $3::int[], $4::bytea[], $5::bytea[]) k`,
      [
        keys.map(({ id }) => id),
        keys.map(({ domainId }) => domainId),
        keys.map(({ tag }) => tag),
        keys.map(({ publicKey }) => Buffer.from(publicKey)),
        keys.map(({ privateKey }) => Buffer.from(privateKey)),
      ],
    )
  } finally {
    await client.end()
  }
}

const zoneOf = /(?:^|\.)(zone-\d+\.test)\.\s/

/** Transfers the zones from our server into files; returns the directory, or null without a program for it. */
export async function transferZoneFiles(
  directory: string,
  ours: { ports: number[] },
  size: number,
): Promise<string | null> {
  const dig = findProgram('dig')
  if (dig === null) return null
  const zones = join(directory, 'signed-zones')
  await mkdir(zones)
  const { name, secret } = transferKey
  const head = `@127.0.0.1 -p ${ours.ports[0]} -y hmac-sha256:${name}:${secret} +onesoa +nosplit +noall +answer AXFR`
  const questions = join(directory, 'transfers')
  const answers = join(directory, 'transferred')
  const all = Array.from({ length: size }, (_, index) => zoneName(index + 1))
  await writeFile(questions, all.map((zone) => `${head} ${zone}\n`).join(''))
  const output = createWriteStream(answers)
  const query = execFile(dig, ['-f', questions], { maxBuffer: 2 ** 30 })
  query.stdout!.pipe(output)
  await new Promise<void>((resolve, reject) => output.once('finish', resolve).once('error', reject))
  const texts = new Map<string, string[]>()
  for (const line of (await readFile(answers, 'utf8')).split('\n')) {
    const zone = line.startsWith(';') ? undefined : zoneOf.exec(line)?.[1]
    if (zone === undefined) continue
    const lines = texts.get(zone) ?? []
    if (lines.push(line) === 1) texts.set(zone, lines)
  }
  if (texts.size !== size) throw new Error(`${texts.size} of ${size} zones were transferred`)
  for (const [zone, lines] of texts) await writeFile(join(zones, `${zone}.zone`), `${lines.join('\n')}\n`)
  return zones
}

/** The database that tells PowerDNS which zones are presigned; false if it can't be created. */
export async function writePresigned(file: string, size: number): Promise<boolean> {
  const [util, sqlite] = ['pdnsutil', 'sqlite3'].map(findProgram)
  if (!util || !sqlite) return false
  await execute(util, ['create-bind-db', file])
  const values = Array.from({ length: size }, (_, index) => `('${zoneName(index + 1)}', 'PRESIGNED', '1')`)
  const sql = `INSERT INTO domainmetadata (domain, kind, content) VALUES ${values.join(', ')};\n`
  await writeFile(`${file}.sql`, sql)
  await execute(sqlite, [file, `.read ${file}.sql`])
  return true
}
