// Types for host names and the deployments and projects they lead to.
import type { Tally } from '../../../platform/observe/tallies.ts'

export type Target = { readonly deploymentId: string; readonly projectId: string }

/** Project settings that apply when sites are served; null: the deployment's manifest decides. */
export type Serving = { spaFallback: boolean | null; cleanUrls: boolean | null }

/**
 * All production hosts of a project share ONE of these, so a single assignment moves production on all of them.
 * `target` is null until something is deployed. A host that is taken down or whose account is suspended is `barred`:
 * it has no target, and visitors get a page that doesn't say why.
 */
export type Host = {
  readonly projectId: string
  target: Target | null
  hsts: boolean
  barred: boolean
  /** Preview protection; null for unprotected and production hosts. */
  gate: Gate | null
  /** Shared by all hosts of a project, so that changed settings apply to all of them. */
  readonly serving?: Serving
  /** With skew protection, the deployments that have served production; else null. */
  pins: ReadonlySet<string> | null
  /** Where all visitors are redirected; such a host has no target. */
  readonly redirect?: Redirect | undefined
}

/** Protection of previews. A new `version` invalidates existing passes. */
export type Gate = {
  readonly kind: 'password' | 'link'
  readonly passwordHash: string | null
  readonly version: number
}

export type Redirect = { readonly host: string; readonly status: number }

/** A host name and what it leads to. */
export type HostEntry = {
  /** As listed in the table, possibly a wildcard. */
  readonly name: string
  readonly kind: 'production' | 'deployment'
  readonly host: Host
  /** The counters of this hour; see traffic.ts. */
  tally: Tally | null
  hour: number
}

export function createEntry(name: string, host: Host, kind: HostEntry['kind']): HostEntry {
  return { name, kind, host, tally: null, hour: 0 }
}

/** The entry for every name that is taken down, whoever owns it. */
const takenDownHost: Host = Object.freeze({
  projectId: '',
  target: null,
  hsts: false,
  barred: true,
  gate: null,
  pins: null,
})
export const takenDownEntry: HostEntry = createEntry('', takenDownHost, 'production')
