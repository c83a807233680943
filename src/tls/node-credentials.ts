// This process's certificate for connections between edges and runners: signed at startup, and again before it expires.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../platform/database/database.ts'
import type { Vault } from '../platform/secrets/secrets.ts'
import type { Snapshots } from '../platform/database/snapshots.ts'
import { type InternalCa, openInternalCas } from '../services/internal-ca/index.ts'
import { createInternalCa, type NodeCertificate, type NodeRole, nodeCertificateMs, signNode } from './internal-ca.ts'

export type NodeCredentials = {
  /** Null while there is none: the database was down at startup, and no snapshot has the authority. */
  readonly current: NodeCertificate | null
  /** Calls `act` with the current certificate, and with each that replaces it. */
  follow(act: (certificate: NodeCertificate) => void): void
  close(): Promise<void>
}

export type CredentialsDeps = {
  db: Database
  vault: Vault
  log: Logger
  /** Where the authority is stored for a start without the database. */
  snapshots?: Snapshots | undefined
}

const retryMs = 5_000

export async function openNodeCredentials(
  { db, vault, log, snapshots }: CredentialsDeps,
  role: NodeRole,
  node: string,
): Promise<NodeCredentials> {
  let known: InternalCa[] = []
  let current: NodeCertificate | null = null
  const closed = new AbortController()
  const followers: ((certificate: NodeCertificate) => void)[] = []
  const kept = snapshots?.open('internal-ca', () => known)

  async function readAuthorities(): Promise<boolean> {
    try {
      known = await openInternalCas(db, vault, createInternalCa)
      kept?.changed()
      kept?.current()
      return true
    } catch (err) {
      if (known.length === 0) known = (await kept?.read<InternalCa>()) ?? []
      log.warn({ err }, 'the internal authority could not be read')
      return false
    }
  }

  /** Returns when to sign the next one. */
  async function sign(): Promise<number> {
    const read = await readAuthorities()
    if (known.length > 0) {
      current = await signNode(known, role, node)
      for (const act of followers) act(current)
    }
    return read ? nodeCertificateMs / 3 : retryMs
  }

  async function renew(nextMs: number): Promise<void> {
    for (;;) {
      try {
        await delay(nextMs, undefined, { signal: closed.signal, ref: false })
      } catch {
        return
      }
      nextMs = await sign().catch((err) => {
        log.error({ err }, 'the certificate of this node could not be renewed')
        return retryMs
      })
    }
  }

  const renewing = renew(await sign())
  return {
    get current() {
      return current
    },
    follow(act) {
      followers.push(act)
      if (current) act(current)
    },
    async close() {
      closed.abort()
      await renewing
      await kept?.close()
    },
  }
}
