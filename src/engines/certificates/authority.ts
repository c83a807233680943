// The interface of a certificate authority: ACME, or our own for development.
import type { AcmeOrder, Challenge, InService } from '../../services/certificates/index.ts'

export type Task = {
  names: string[]
  /** Our hosted zone for the DNS proof of a name; null if there is none. */
  zoneOf(name: string): string | null
  /** The certificate to replace. */
  replaces: InService | null
  /** The stored state of the order. */
  order: AcmeOrder
  /** Stores what a resumed order needs. */
  begin(key: string): Promise<void>
  setUrl(url: string): Promise<void>
  publish(challenges: Challenge[]): Promise<void>
  signal: AbortSignal
}

export type Authority = {
  /** Empty for the development CA. */
  directory: string
  /** The issuer name of the development CA; null for others. */
  issuer: string | null
  /** Returns PEM. Throws IssueFailure if the authority is the cause. */
  obtain(task: Task): Promise<{ chain: string; key: string }>
  /** How long after issuance the authority is first asked about renewal. */
  renewalCheckMs: number
  /** When the authority suggests renewal, and when to check that again. */
  renewalWindow(certificate: InService, signal: AbortSignal): Promise<{ at: Date; nextCheckAt: Date } | null>
  close(): void
}
