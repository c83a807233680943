// Certificates for every domain of an installation, stored like the platform's: PEM chain, sealed key.
import pg from 'pg'
import { createVault, placeOf } from '../../src/platform/secrets/secrets.ts'
import { createAuthority, type Issued } from '../../test/tls/authority.ts'
import { domainHost } from '../edge/seed.ts'

/** wrk requests the certificate of the URL's host, which must resolve without DNS. */
export const visitedHost = 'localhost'
const rowsAtOnce = 500

/** Gives the first domain the visited name, and each domain a certificate; returns that of the first. */
export async function seedCertificates(databaseUrl: string, secretsKey: Buffer, size: number): Promise<Issued> {
  const vault = createVault(secretsKey)
  const authority = await createAuthority()
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    await client.query(`UPDATE domain SET name = $1 WHERE id = 'dom_1'`, [visitedHost])
    const first = await authority.issue([visitedHost])
    for (let from = 1; from <= size; from += rowsAtOnce) {
      const numbers = Array.from({ length: Math.min(rowsAtOnce, size - from + 1) }, (_, i) => from + i)
      const issued = await Promise.all(
        numbers.map((number) => (number === 1 ? first : authority.issue([domainHost(number)]))),
      )
      await client.query(
        `INSERT INTO certificate (id, account_id, names, chain, key, issuer, serial, not_before, not_after, renew_at, directory)
         SELECT 'crt_' || number, 'acc_1', ARRAY[name], chain, key, 'bench', serial, now(), now() + interval '90 days',
           now() + interval '60 days', 'bench'
         FROM unnest($1::int[], $2::text[], $3::text[], $4::bytea[], $5::text[]) AS t(number, name, chain, key, serial)`,
        [
          numbers,
          issued.map(({ names }) => names[0]),
          issued.map(({ chain }) => chain),
          issued.map(({ key }, i) => vault.seal(key, placeOf.certificate(`crt_${numbers[i]}`))),
          issued.map(({ serial }) => serial),
        ],
      )
    }
    await client.query(`UPDATE domain SET certificate_id = 'crt_' || substr(id, 5)`)
    await client.query('VACUUM (ANALYZE)')
    return first
  } finally {
    await client.end()
  }
}
