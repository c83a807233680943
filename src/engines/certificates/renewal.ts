// Decides when to renew a certificate: after two thirds of its life, or earlier if the authority says so (RFC 9773).
import { hash, X509Certificate } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import type { InService } from '../../services/certificates/index.ts'

const lifeBeforeRenewal = 2 / 3

/** Never immediately, even if the authority backdates certificates, because that would be a loop of orders. */
export function plannedRenewal(notBefore: Date, notAfter: Date, now = new Date()): Date {
  const plannedMs = notBefore.getTime() + (notAfter.getTime() - notBefore.getTime()) * lifeBeforeRenewal
  const minMs = now.getTime() + (notAfter.getTime() - now.getTime()) * (1 - lifeBeforeRenewal)
  return new Date(Math.max(plannedMs, minMs))
}

/** A time in the suggested window that differs per certificate but stays the same on each read. */
export function momentWithin(start: Date, end: Date, certificateId: string): Date {
  const share = Number.parseInt(hash('sha256', certificateId).slice(0, 8), 16) / 0x1_0000_0000
  return new Date(start.getTime() + (end.getTime() - start.getTime()) * share)
}

/** Section 4.1: the issuer's key identifier and the serial number in base64url; null without a key identifier. */
export function renewalIdOf(chain: string): string | null {
  const leaf = new x509.X509Certificate(new X509Certificate(chain).raw)
  const { keyId } = leaf.getExtension(x509.AuthorityKeyIdentifierExtension) ?? {}
  if (!keyId) return null
  // As in DER, a zero octet precedes a serial whose first bit is set.
  const digits = leaf.serialNumber.length % 2 === 0 ? leaf.serialNumber : `0${leaf.serialNumber}`
  const serial = Buffer.from(digits, 'hex')
  const signed = serial[0]! >= 0x80 ? Buffer.concat([Buffer.from([0]), serial]) : serial
  return `${Buffer.from(keyId, 'hex').toString('base64url')}.${signed.toString('base64url')}`
}

/** Whether a new certificate is needed now. */
export function isDue(certificate: InService | null, names: string[], now = new Date()): boolean {
  if (!certificate) return true
  return certificate.renewAt <= now || names.some((name) => !certificate.names.includes(name))
}
