// The public URLs of this installation.
import { ownNames } from './own-names.ts'

export type Urls = {
  /** The API's URL, without a trailing slash. */
  readonly api: string
  /** The URL of one of our hosts at the edge: https in production, the development port elsewhere. */
  deployment(label: string): string
  /** Whether the platform itself uses a label's host, so that no project may have it. */
  isOwnLabel(label: string): boolean
  /** The host name of that URL, as the edge looks it up. */
  host(label: string): string
  /** Where a repository host sends pushes. */
  push(projectId: string): string
  /** Where a deployment can be started with the secret. */
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
