// A certificate authority of two levels for tests, and its certificates in the database as the platform keeps them.
import { randomBytes } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import type { Database } from '../../src/platform/database/database.ts'
import { newId } from '../../src/platform/ids.ts'
import { placeOf, type Vault } from '../../src/platform/secrets/secrets.ts'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const dayMs = 86_400_000

export type Issued = { names: string[]; chain: string; key: string; serial: string; notBefore: Date; notAfter: Date }

export type Authority = {
  /** What a client has to trust. */
  rootPem: string
  issue(names: string[], lifeMs?: number, keys?: Keys): Promise<Issued>
}

const rsa = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', publicExponent: new Uint8Array([1, 0, 1]) }

/** Keys of a certificate as older clients want it. */
export const newRsaKeys = () => crypto.subtle.generateKey({ ...rsa, modulusLength: 2048 }, true, ['sign', 'verify'])

const newKeys = () => crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
type Keys = Awaited<ReturnType<typeof newKeys>>
// Begins with what no reader strips.
const newSerial = () => `01${randomBytes(15).toString('hex')}`

export async function createAuthority(): Promise<Authority> {
  const life = { notBefore: new Date(Date.now() - dayMs), notAfter: new Date(Date.now() + 365 * dayMs) }
  const rootKeys = await newKeys()
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    ...life,
    serialNumber: newSerial(),
    name: 'CN=Test root',
    signingAlgorithm: algorithm,
    keys: rootKeys,
    extensions: await caExtensions(rootKeys, rootKeys),
  })
  const issuerKeys = await newKeys()
  const issuer = await x509.X509CertificateGenerator.create({
    ...life,
    serialNumber: newSerial(),
    issuer: root.subject,
    subject: 'CN=Test issuer',
    signingAlgorithm: algorithm,
    signingKey: rootKeys.privateKey,
    publicKey: issuerKeys.publicKey,
    extensions: await caExtensions(issuerKeys, rootKeys),
  })
  return {
    rootPem: `${root.toString('pem')}\n`,
    async issue(names, lifeMs = 90 * dayMs, keys) {
      const leafKeys = keys ?? (await newKeys())
      const serial = newSerial()
      const [notBefore, notAfter] = [new Date(Date.now() - dayMs), new Date(Date.now() + lifeMs)]
      const leaf = await x509.X509CertificateGenerator.create({
        serialNumber: serial,
        issuer: issuer.subject,
        subject: '',
        notBefore,
        notAfter,
        signingAlgorithm: algorithm,
        signingKey: issuerKeys.privateKey,
        publicKey: leafKeys.publicKey,
        extensions: [
          new x509.SubjectAlternativeNameExtension(
            names.map((value) => ({ type: 'dns' as const, value })),
            true,
          ),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
          await x509.AuthorityKeyIdentifierExtension.create(issuerKeys.publicKey),
        ],
      })
      const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', leafKeys.privateKey))
      const key = `-----BEGIN PRIVATE KEY-----\n${pkcs8.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`
      return { names, chain: `${leaf.toString('pem')}\n${issuer.toString('pem')}\n`, key, serial, notBefore, notAfter }
    },
  }
}

async function caExtensions(own: Keys, issuer: Keys): Promise<x509.Extension[]> {
  const usages = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign
  return [
    new x509.BasicConstraintsExtension(true, undefined, true),
    new x509.KeyUsagesExtension(usages, true),
    await x509.SubjectKeyIdentifierExtension.create(own.publicKey),
    await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
  ]
}

/** Writes the certificate's row and returns its id; without an account it is the platform's own. */
export async function storeCertificate(
  db: Database,
  vault: Vault,
  { key, ...issued }: Issued,
  accountId: string | null = null,
): Promise<string> {
  const id = newId('crt')
  await db.certificate.create({
    data: {
      ...issued,
      id,
      accountId,
      key: new Uint8Array(vault.seal(key, placeOf.certificate(id))),
      issuer: 'Test issuer',
      renewAt: issued.notAfter,
      directory: 'test',
    },
  })
  return id
}

/** Puts a certificate into the service of a domain. */
export async function serveCertificate(db: Database, vault: Vault, domain: string, issued: Issued): Promise<string> {
  const { id: domainId, accountId } = await db.domain.findFirstOrThrow({ where: { name: domain } })
  const id = await storeCertificate(db, vault, issued, accountId)
  await db.domain.update({ where: { id: domainId }, data: { certificateId: id } })
  return id
}
