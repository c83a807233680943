// The CA for development: a root in the data directory that `curl --cacert` and browsers can trust.
import { createPublicKey, generateKeyPairSync, hash, randomBytes, type webcrypto } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as x509 from '@peculiar/x509'
import type { Authority } from './authority.ts'
import { algorithm, importKey, importPublicKey, newKey } from './keys.ts'

const dayMs = 86_400_000
const rootDays = 3650
// As public authorities issue, so that renewal works the same in development.
const leafDays = 90
// Clocks of virtual machines may be slow.
const backdateMs = 3_600_000

type Root = { certificate: x509.X509Certificate; key: webcrypto.CryptoKey; issuer: string }

/** Positive and at most 20 octets (RFC 5280, section 4.1.2.2). */
function newSerial(): string {
  const octets = randomBytes(16)
  octets[0] = (octets[0]! & 0x3f) | 0x40
  return octets.toString('hex')
}

async function makeRoot(): Promise<{ certificate: string; key: string }> {
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

/** Writes a file unless it exists; if several processes start together, all use the first one's. */
async function writeOnce(path: string, text: string, mode: number): Promise<string> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  await writeFile(draft, text, { mode, flag: 'wx' })
  try {
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft)
  }
  return readFile(path, 'utf8')
}

async function openRoot(directory: string): Promise<Root> {
  await mkdir(directory, { recursive: true })
  const rootFile = join(directory, 'root.pem')
  const keyFile = join(directory, 'root.key')
  const stored = await readFile(keyFile, 'utf8').catch(() => null)
  const made = stored === null ? await makeRoot() : null
  // One file holds both, so that there is never a certificate without its key; root.pem is a readable copy.
  const bundle = stored ?? (await writeOnce(keyFile, `${made!.key}${made!.certificate}\n`, 0o600))
  const [key = ''] = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/.exec(bundle) ?? []
  const [pem = ''] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(bundle) ?? []
  if (!key || !pem) throw new Error(`${keyFile} is broken; delete it and another root is made.`)
  await writeFile(rootFile, `${pem}\n`, { mode: 0o644 })
  const certificate = new x509.X509Certificate(pem)
  return { certificate, key: await importKey(key), issuer: certificate.subject }
}

export async function createDevelopmentCa(directory: string): Promise<Authority & { rootPem: string }> {
  const root = await openRoot(directory)

  async function sign(names: string[]): Promise<{ chain: string; key: string }> {
    const key = newKey()
    const publicKey = await importPublicKey(key)
    const leaf = await x509.X509CertificateGenerator.create({
      serialNumber: newSerial(),
      subject: '',
      issuer: root.certificate.subject,
      notBefore: new Date(Date.now() - backdateMs),
      notAfter: new Date(Date.now() + leafDays * dayMs),
      signingAlgorithm: algorithm,
      publicKey,
      signingKey: root.key,
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
        await x509.AuthorityKeyIdentifierExtension.create(root.certificate.publicKey),
      ],
    })
    return { chain: `${leaf.toString('pem')}\n`, key }
  }

  return {
    directory: '',
    issuer: root.issuer,
    rootPem: root.certificate.toString('pem'),
    obtain: ({ names }) => sign(names),
    askAgainMs: leafDays * dayMs,
    renewalWindow: async () => null,
    close() {},
  }
}
