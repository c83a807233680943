// The host names that the installation itself uses, from its configuration. No customer may have one of them.
import { domainToASCII } from 'node:url'

export type OwnNamesOptions = {
  readonly baseUrl: string
  readonly nameservers: readonly string[]
  readonly edge: { readonly domain: string }
}

export type OwnNames = {
  /** DEPLOYMENT_DOMAIN. All names here are lower-case Punycode without a trailing dot. */
  readonly domain: string
  /**
   * The hosts of the API and the nameservers, and the names between them and the domain: whoever owns `console.<domain>`
   * could set cookies for `a.console.<domain>`.
   */
  readonly hosts: ReadonlySet<string>
}

const known = new WeakMap<OwnNamesOptions, OwnNames>()

/** Normalizes a name. Anything that isn't a host name, such as an IPv6 address in brackets, is left as it is. */
function plainName(text: string): string {
  const name = text.trim().replace(/\.+$/, '')
  return domainToASCII(name) || name.toLowerCase()
}

/** Computed once per configuration. */
export function ownNames(options: OwnNamesOptions): OwnNames {
  const before = known.get(options)
  if (before) return before
  const domain = plainName(options.edge.domain)
  const hosts = new Set<string>()
  for (const text of [new URL(options.baseUrl).hostname, ...options.nameservers]) {
    let name = plainName(text)
    hosts.add(name)
    while (name.endsWith(`.${domain}`)) {
      hosts.add(name)
      name = name.slice(name.indexOf('.') + 1)
    }
  }
  const names = { domain, hosts }
  known.set(options, names)
  return names
}
