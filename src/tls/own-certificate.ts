// Keeps the certificate of one of our servers current, without a restart and without closing connections.
import type { Server } from 'node:tls'
import type { Logger } from 'pino'
import { tlsPolicy } from './policy.ts'
import type { CertificateStore } from './store.ts'

/**
 * Without a certificate, the server refuses every handshake. It must start anyway, because this process may be the one
 * that gets the certificate.
 */
export function keepOwnCertificate(
  server: Server,
  certificates: CertificateStore,
  host: string,
  log: Logger,
): () => void {
  let current: string | null = null
  function swap(): void {
    try {
      const pem = certificates.pemOf(host)
      // A certificate removed from the database is used until there is a new one.
      if (!pem || pem.id === current) return
      // A new context has its own ticket keys, which no other process could resume sessions with.
      const ticketKeys = server.getTicketKeys()
      server.setSecureContext({ cert: pem.cert, key: pem.key, ...tlsPolicy })
      server.setTicketKeys(ticketKeys)
      current = pem.id
      log.info({ host, certificateId: pem.id }, 'the server has a new certificate')
    } catch (err) {
      log.error({ err, host }, 'the certificate of the server cannot be used')
    }
  }
  swap()
  if (current === null) log.warn({ host }, 'no certificate yet: clients are refused until it is issued')
  return certificates.onChange(swap)
}
