// Creates the internal authority, and the certificates with which edges and runners authenticate each other.
import { randomBytes, webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import type { InternalCa } from '../services/internal-ca/index.ts'

/** An edge's certificate is valid only for clients, a runner's only for servers. */
export type NodeRole = 'edge' | 'runner'

export type NodeCertificate = { cert: string; key: string; ca: string[]; notAfter: Date }

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const yearMs = 365 * 86_400_000
const caYears = 20
// The machines' clocks differ.
const backdateMs = 3_600_000
export const nodeCertificateMs = 24 * 3_600_000

const newKeys = () => webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
/** Positive and at most 20 octets (RFC 5280, section 4.1.2.2). */
const newSerial = () => `01${randomBytes(15).toString('hex')}`

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')
}

/** The URI that identifies the holder of a certificate. */
export function nodeUri(role: NodeRole, node: string): string {
  return `berth://${role}/${encodeURIComponent(node)}`
}

export async function createInternalCa(): Promise<InternalCa> {
  const keys = await newKeys()
  const id = randomBytes(8).toString('hex')
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: `CN=Berth internal ${id}`,
    notBefore: new Date(Date.now() - backdateMs),
    notAfter: new Date(Date.now() + caYears * yearMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { id, certificate: certificate.toString('pem'), key: await pemOf(keys.privateKey) }
}

/** Signed by the first authority; all of them are trusted. */
export async function signNode(
  [signer, ...others]: readonly InternalCa[],
  role: NodeRole,
  node: string,
  lifeMs = nodeCertificateMs,
): Promise<NodeCertificate> {
  const ca = new x509.X509Certificate(signer!.certificate)
  const der = x509.PemConverter.decodeFirst(signer!.key)
  const signingKey = await webcrypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign'])
  const keys = await newKeys()
  const notAfter = new Date(Date.now() + lifeMs)
  const { clientAuth, serverAuth } = x509.ExtendedKeyUsage
  const leaf = await x509.X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject: '',
    issuer: ca.subject,
    notBefore: new Date(Date.now() - backdateMs),
    notAfter,
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([role === 'edge' ? clientAuth : serverAuth], true),
      // Critical, because the subject is empty (RFC 5280, section 4.2.1.6).
      new x509.SubjectAlternativeNameExtension([{ type: 'url', value: nodeUri(role, node) }], true),
      await x509.AuthorityKeyIdentifierExtension.create(ca.publicKey),
    ],
  })
  return {
    cert: leaf.toString('pem'),
    key: await pemOf(keys.privateKey),
    ca: [signer!, ...others].map(({ certificate }) => certificate),
    notAfter,
  }
}
