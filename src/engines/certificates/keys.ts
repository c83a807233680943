// Keys, ECDSA on P-256 and a new one for every certificate; and what comes back is looked at before it is used.
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { IssueFailure } from './failures.ts'

/** PEM, PKCS #8. */
export function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
}

export type ChainFacts = { names: string[]; issuer: string; serial: string; notBefore: Date; notAfter: Date }

/** Reads the certificate at the head of a chain, and refuses one that cannot serve what it was ordered for. */
export function readChain(chain: string, key: string, ordered: string[]): ChainFacts {
  const leaf = new X509Certificate(chain)
  const names = (leaf.subjectAltName ?? '')
    .split(', ')
    .flatMap((entry) => /^DNS:(.+)$/.exec(entry)?.[1]?.toLowerCase() ?? [])
  if (!leaf.checkPrivateKey(createPrivateKey(key)) || ordered.some((name) => !names.includes(name))) {
    throw new IssueFailure('failed', 'The certificate authority issued a certificate for other names or another key.')
  }
  const notBefore = new Date(leaf.validFrom)
  const notAfter = new Date(leaf.validTo)
  if (notAfter.getTime() <= Date.now()) {
    throw new IssueFailure('failed', 'The certificate authority issued a certificate that is over already.')
  }
  // In the order in which certificates are usually quoted, the name itself first.
  const issuer = leaf.issuer.split('\n').reverse().join(',')
  // The ordered names come first and in their order: the first of a platform's names is what its notification says.
  const sorted = [...ordered, ...names.filter((name) => !ordered.includes(name))]
  return { names: sorted, issuer, serial: leaf.serialNumber.toLowerCase(), notBefore, notAfter }
}
