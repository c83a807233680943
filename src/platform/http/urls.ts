// The public addresses of this installation.
import { ownNames } from './own-names.ts'

export type Urls = {
  /** Of the API, without a slash at its end. */
  readonly api: string
  /** Where the edge serves a host of ours: https in production, the development port elsewhere. */
  deployment(label: string): string
  /** Whether the platform itself uses the host of a label, so that no project may have it. */
  isOwnLabel(label: string): boolean
  /** The host name of that address, as the edge looks it up. */
  host(label: string): string
  /** Where a repository host sends pushes to. */
  push(projectId: string): string
  /** Where whoever knows the secret starts a deployment. */
  deployHook(secret: string): string
}

export type UrlsOptions = {
  baseUrl: string
  nameservers: readonly string[]
  production: boolean
  edge: { domain: string; httpPort: number }
}

export function createUrls(options: UrlsOptions): Urls {
  const { baseUrl, production, edge } = options
  const { domain, hosts } = ownNames(options)
  const [scheme, port] = production ? ['https', ''] : ['http', edge.httpPort === 80 ? '' : `:${edge.httpPort}`]
  return {
    api: baseUrl,
    deployment: (label) => `${scheme}://${label}.${edge.domain}${port}`,
    isOwnLabel: (label) => hosts.has(`${label}.${domain}`),
    host: (label) => `${label}.${edge.domain}`.toLowerCase(),
    push: (projectId) => `${baseUrl}/hooks/git/${projectId}`,
    deployHook: (secret) => `${baseUrl}/hooks/deploy/${secret}`,
  }
}
