// The public addresses of this installation.
export type Urls = {
  /** Of the API, without a slash at its end. */
  readonly api: string
  /** Where the edge serves a host of ours: https in production, the development port elsewhere. */
  deployment(label: string): string
  /** The host name of that address, as the edge looks it up. */
  host(label: string): string
  /** Where a repository host sends pushes to. */
  push(projectId: string): string
}

export type UrlsOptions = { baseUrl: string; production: boolean; edge: { domain: string; httpPort: number } }

export function createUrls({ baseUrl, production, edge }: UrlsOptions): Urls {
  const [scheme, port] = production ? ['https', ''] : ['http', edge.httpPort === 80 ? '' : `:${edge.httpPort}`]
  return {
    api: baseUrl,
    deployment: (label) => `${scheme}://${label}.${edge.domain}${port}`,
    host: (label) => `${label}.${edge.domain}`.toLowerCase(),
    push: (projectId) => `${baseUrl}/hooks/git/${projectId}`,
  }
}
