// What the engine asks of a certificate authority, be it one behind ACME or our own for development.
import type { AcmeOrder, Challenge } from '../../services/acme.ts'
import type { InService } from '../../services/certificate-ledger.ts'

export type Task = {
  names: string[]
  /** Zone of ours that shows the proof for a name, if we host one. */
  zoneOf(name: string): string | null
  /** The certificate that the new one takes the place of. */
  replaces: InService | null
  /** The order as it was left by whoever began it. */
  order: AcmeOrder
  /** Keeps what a restart needs to go on. */
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
  /** PEM both. Throws IssueFailure when the authority is the reason. */
  obtain(task: Task): Promise<{ chain: string; key: string }>
  /** How long a new certificate is left alone before the authority is asked about its renewal. */
  askAgainMs: number
  /** When the authority wants a certificate of its own renewed, and when to ask again. */
  renewalWindow(certificate: InService, signal: AbortSignal): Promise<{ at: Date; askAgainAt: Date } | null>
  close(): void
}
