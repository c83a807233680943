// The deployment and the project that a host name leads to.
import type { Tally } from '../../../platform/observe/tallies.ts'

export type Target = { readonly deploymentId: string; readonly projectId: string }

/** The settings of a project that act when its sites are served; null: as the deployment's manifest has it. */
export type Serving = { spaFallback: boolean | null; cleanUrls: boolean | null }

/**
 * All production hosts of a project share ONE of these, so production moves on all of them with a single assignment.
 * `target` is null until something is deployed; `hsts` is the project's setting. A host that is taken down or whose
 * account is suspended is `barred`: it has no target, and visitors get a page that says nothing about it.
 */
export type Host = {
  readonly projectId: string
  target: Target | null
  hsts: boolean
  barred: boolean
  /** What visitors have to show first; null for most, and for all production hosts. */
  gate: Gate | null
  /** One for all hosts of a project, which a change of its settings changes; where there is none, manifests decide. */
  readonly serving?: Serving
  /** Deployments of the project that served production, where a page may go on with its own; null for most hosts. */
  pins: ReadonlySet<string> | null
  /** Where all visitors of the host are sent; such a host has no target. */
  readonly redirect?: Redirect | undefined
}

/** Protection of previews. Another `version` ends what was opened before. */
export type Gate = {
  readonly kind: 'password' | 'link'
  readonly passwordHash: string | null
  readonly version: number
}

export type Redirect = { readonly host: string; readonly status: number }

/** A host name, and what it leads to. */
export type Place = {
  /** As the table has it; a wildcard stands for all names that it fits. */
  readonly name: string
  readonly kind: 'production' | 'deployment'
  readonly host: Host
  /** Its counters, and the hour that they were given out for; see traffic.ts. */
  tally: Tally | null
  hour: number
}

export function placeAt(name: string, host: Host, kind: Place['kind']): Place {
  return { name, kind, host, tally: null, hour: 0 }
}

/** What every name that is taken down leads to, whoever has it. */
const takenDownHost: Host = Object.freeze({
  projectId: '',
  target: null,
  hsts: false,
  barred: true,
  gate: null,
  pins: null,
})
export const takenDown: Place = placeAt('', takenDownHost, 'production')
