// The CA for development, with one root for the whole installation that curl and browsers can trust.
import { createPublicKey, generateKeyPairSync, hash, randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as x509 from '@peculiar/x509'
import type { Database } from '../../platform/database/database.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { findOrCreateRoot, type Root } from '../../services/certificates/index.ts'
import type { Authority } from './authority.ts'
import { algorithm, importKey, importPublicKey, newKey } from './keys.ts'

const dayMs = 86_400_000
const rootDays = 3650
// The same as public authorities, so that renewal works the same in development.
const leafDays = 90
// The clocks of virtual machines may be slow.
const backdateMs = 3_600_000

/** Positive and at most 20 octets (RFC 5280, section 4.1.2.2). */
function newSerial(): string {
  const octets = randomBytes(16)
  octets[0] = (octets[0]! & 0x3f) | 0x40
  return octets.toString('hex')
}

async function makeRoot(): Promise<Root> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const publicKey = await importPublicKey(key)
  // A unique name, so that two roots on one machine can be told apart.
  const mark = hash('sha256', createPublicKey(key).export({ type: 'spki', format: 'pem' }) as string).slice(0, 8)
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: `CN=Berth Development CA ${mark}`,
    notBefore: new Date(Date.now() - backdateMs),
    notAfter: new Date(Date.now() + rootDays * dayMs),
    signingAlgorithm: algorithm,
    keys: { privateKey: await importKey(key), publicKey },
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ],
  })
  return { certificate: certificate.toString('pem'), key }
}

/** Reads the root of an older version's data directory, so that it stays trusted. */
async function readOwnRoot(directory: string): Promise<Root | null> {
  const file = join(directory, 'root.key')
  const bundle = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return null
  })
  if (bundle === null) return null
  const [key = ''] = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/.exec(bundle) ?? []
  const [certificate = ''] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(bundle) ?? []
  if (!key || !certificate) throw new Error(`${file} is broken; delete it to create a new root.`)
  return { certificate, key }
}

/** Only writes changes, so that a full disk doesn't keep a worker from starting. */
async function writeRoot(file: string, text: string): Promise<void> {
  if ((await readFile(file, 'utf8').catch(() => null)) === text) return
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text, { mode: 0o644 })
}

export type DevelopmentCaOptions = {
  db: Database
  vault: Vault
  /** Where `root.pem` is written for curl and browsers. Older versions stored the key there too. */
  directory: string
}

export async function createDevelopmentCa(options: DevelopmentCaOptions): Promise<Authority & { rootPem: string }> {
  const { db, vault, directory } = options
  const root = await findOrCreateRoot(db, vault, async () => (await readOwnRoot(directory)) ?? makeRoot())
  const certificate = new x509.X509Certificate(root.certificate)
  const rootPem = certificate.toString('pem')
  await writeRoot(join(directory, 'root.pem'), `${rootPem}\n`)

  async function sign(names: string[]): Promise<{ chain: string; key: string }> {
    const key = newKey()
    const publicKey = await importPublicKey(key)
    const leaf = await x509.X509CertificateGenerator.create({
      serialNumber: newSerial(),
      subject: '',
      issuer: certificate.subject,
      notBefore: new Date(Date.now() - backdateMs),
      notAfter: new Date(Date.now() + leafDays * dayMs),
      signingAlgorithm: algorithm,
      publicKey,
      // Decrypted on demand, so that a worker without the right SECRETS_KEY can still do everything else.
      signingKey: await importKey(root.openKey()),
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        // Critical, because the subject is empty (RFC 5280, section 4.2.1.6).
        new x509.SubjectAlternativeNameExtension(
          names.map((value) => ({ type: 'dns' as const, value })),
          true,
        ),
        await x509.SubjectKeyIdentifierExtension.create(publicKey),
        await x509.AuthorityKeyIdentifierExtension.create(certificate.publicKey),
      ],
    })
    return { chain: `${leaf.toString('pem')}\n`, key }
  }

  return {
    directory: '',
    issuer: certificate.subject,
    rootPem,
    obtain: ({ names }) => sign(names),
    renewalCheckMs: leafDays * dayMs,
    renewalWindow: async () => null,
    close() {},
  }
}
