// The interface of a certificate authority, either ACME or our own for development.
import type { AcmeOrder, Challenge, InService } from '../../services/certificates/index.ts'

export type Task = {
  names: string[]
  /** The zone we host in which the proof for a name is published; null if there is none. */
  zoneOf(name: string): string | null
  /** The certificate that the new one replaces. */
  replaces: InService | null
  /** The stored state of the order. */
  order: AcmeOrder
  /** Stores what is needed to resume after a restart. */
  begin(key: string): Promise<void>
  setUrl(url: string): Promise<void>
  publish(challenges: Challenge[]): Promise<void>
  signal: AbortSignal
}

export type Authority = {
  /** Empty for the development CA. */
  directory: string
  /** The name under which the development CA signs; null for any other. */
  issuer: string | null
  /** Both PEM. Throws IssueFailure if the authority is the cause. */
  obtain(task: Task): Promise<{ chain: string; key: string }>
  /** How long after issuance the authority is first asked about renewal. */
  askAgainMs: number
  /** When the authority wants its certificate renewed, and when to ask again. */
  renewalWindow(certificate: InService, signal: AbortSignal): Promise<{ at: Date; askAgainAt: Date } | null>
  close(): void
}
