// The deployment and the project that a host name leads to.
export type Target = { readonly deploymentId: string; readonly projectId: string }

/**
 * All production hosts of a project share ONE of these, so production moves on all of them with a single assignment.
 * `target` is null until something is deployed; `hsts` is the project's setting.
 */
export type Host = { readonly projectId: string; target: Target | null; hsts: boolean }
