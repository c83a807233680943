// Certificate keys (ECDSA on P-256, one per certificate), signing requests, and checks of issued chains.
import { createPrivateKey, createPublicKey, generateKeyPairSync, webcrypto, X509Certificate } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import { IssueFailure } from './failures.ts'

/** Returns PKCS #8 in PEM. */
export function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
}

export const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** `pem` is a private key. */
export function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' })
  return webcrypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign'])
}

export function importPublicKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPublicKey(pem).export({ type: 'spki', format: 'der' })
  return webcrypto.subtle.importKey('spki', der, algorithm, true, ['verify'])
}

/** Returns a signing request in DER. `key` is a private key in PEM. */
export async function newSigningRequest(names: string[], key: string): Promise<Buffer> {
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    // A common name is limited to 64 characters and ignored if there are alternative names.
    name: '',
    keys: { privateKey: await importKey(key), publicKey: await importPublicKey(key) },
    signingAlgorithm: algorithm,
    extensions: [new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns' as const, value })))],
  })
  return Buffer.from(request.rawData)
}

export type ChainFacts = { names: string[]; issuer: string; serial: string; notBefore: Date; notAfter: Date }

function readLeaf(chain: string): X509Certificate {
  try {
    return new X509Certificate(chain)
  } catch {
    throw new IssueFailure('failed', 'The certificate authority sent a certificate that cannot be read.')
  }
}

/** Reads the first certificate of a chain; throws if it does not match the key and the ordered names. */
export function readChain(chain: string, key: string, ordered: string[]): ChainFacts {
  const leaf = readLeaf(chain)
  const names = (leaf.subjectAltName ?? '')
    .split(', ')
    .flatMap((entry) => /^DNS:(.+)$/.exec(entry)?.[1]?.toLowerCase() ?? [])
  if (!leaf.checkPrivateKey(createPrivateKey(key)) || ordered.some((name) => !names.includes(name))) {
    throw new IssueFailure('failed', 'The certificate authority issued a certificate for other names or another key.')
  }
  const notBefore = new Date(leaf.validFrom)
  const notAfter = new Date(leaf.validTo)
  if (notAfter.getTime() <= Date.now()) {
    throw new IssueFailure('failed', 'The certificate authority issued a certificate that has already expired.')
  }
  // In the usual order, starting with the common name.
  const issuer = leaf.issuer.split('\n').reverse().join(',')
  // Starts with the ordered names in their order, because notifications of platform certificates use the first one.
  const sorted = [...ordered, ...names.filter((name) => !ordered.includes(name))]
  return { names: sorted, issuer, serial: leaf.serialNumber.toLowerCase(), notBefore, notAfter }
}
