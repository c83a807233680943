// A state as a shape and a word: dot for ready, square for busy, triangle for bad, ring for off.
import type { ComponentChildren } from 'preact'
import type { Schemas } from './api.ts'

export type Tone = 'ready' | 'busy' | 'bad' | 'off'

export function State({ is, children }: { is: Tone; children: ComponentChildren }) {
  return <span class={`state ${is}`}>{children}</span>
}

const deploymentStates: Record<string, [Tone, string]> = {
  BUILDING: ['busy', 'Building'],
  READY: ['ready', 'Ready'],
  ERROR: ['bad', 'Error'],
  CANCELED: ['off', 'Canceled'],
}

export function DeploymentState({ of }: { of: Pick<Schemas['Deployment'], 'state' | 'queuePosition'> }) {
  const [tone, word] = deploymentStates[of.state] ?? ['off', of.state]
  if (of.state === 'BUILDING' && of.queuePosition) return <State is="busy">Queued, number {of.queuePosition}</State>
  return <State is={tone}>{word}</State>
}

/** The state of a domain: what still keeps visitors from it. */
export function domainState(domain: Pick<Schemas['Domain'], 'verified' | 'ssl'>): [Tone, string] {
  if (!domain.verified) return ['busy', 'Not verified']
  if (domain.ssl === 'ERROR') return ['bad', 'Certificate failed']
  if (domain.ssl === 'EXPIRED') return ['bad', 'Certificate expired']
  if (domain.ssl === 'ACTIVE') return ['ready', 'Active']
  return ['busy', 'Certificate pending']
}

export function DomainState({ of }: { of: Parameters<typeof domainState>[0] }) {
  const [tone, word] = domainState(of)
  return <State is={tone}>{word}</State>
}
