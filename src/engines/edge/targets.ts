// The deployment and the project that a host name leads to.
export type Target = { readonly deploymentId: string; readonly projectId: string }

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
  /** Where all visitors of the host are sent; such a host has no target. */
  readonly redirect?: Redirect | undefined
}

export type Redirect = { readonly host: string; readonly status: number }

/** What every name that is taken down leads to, whoever has it. */
export const takenDownHost: Host = Object.freeze({ projectId: '', target: null, hsts: false, barred: true })
