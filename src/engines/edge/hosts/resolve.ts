// Finds what a site serves at a path: its files first, then its rules, then its fallbacks.
import { applyRedirects, type Redirected, type RedirectRule } from '../../../platform/site-rules/redirects.ts'
import type { FileRoute, RedirectRoute, Route } from '../answer/routes.ts'

export type Addresses = {
  routes: ReadonlyMap<string, Route>
  redirects: readonly RedirectRule[]
  /** Whether any rule takes precedence over files; if none does, a file is found by one look-up. */
  forced: boolean
  /** The page of a single-page app, for every path that looks like a page; null if the site has none. */
  fallback: FileRoute | null
  /** 404.html of the root, if there is one. */
  notFound: FileRoute | null
}

export type Resolution = FileRoute | RedirectRoute | null

/** What the answer depends on besides the address. */
export type Asked = {
  /** The visitor's Accept-Language. */
  language?: string | undefined
  /** Whether an unknown path gets the page of a single-page app. */
  asApp?: boolean
}

const bare: Asked = {}

/** `path` is decoded and starts with a slash; `query` is '' or starts with `?`. Null: nothing is served here. */
export function resolve(site: Addresses, path: string, query: string, { language, asApp }: Asked = bare): Resolution {
  const route = site.routes.get(path)
  if (route && !site.forced) return passOn(route, query)
  const rule = site.redirects.length > 0 ? applyRedirects(site.redirects, path, query, language) : null
  if (route && !rule?.forced) return passOn(route, query)
  if (rule) return follow(site, rule)
  if (asApp && site.fallback && looksLikePage(path)) return site.fallback
  return site.notFound
}

function follow(site: Addresses, rule: Redirected): Resolution {
  if (rule.kind === 'redirect') return { kind: 'redirect', location: rule.location, status: rule.status }
  const found = fileAt(site.routes, rule.path)
  // A copy, because the route's own headers are those of its own path.
  return found ? { kind: 'file', path: found.path, file: found.file, status: rule.status } : site.notFound
}

/** The file a rewrite names by any of its paths; the visitor's address bar does not change. */
function fileAt(routes: ReadonlyMap<string, Route>, path: string): FileRoute | null {
  let route = routes.get(path)
  // A page's other paths redirect to its canonical one, which always has a file.
  if (route?.kind === 'redirect') route = routes.get(decodeURIComponent(route.location))
  return route?.kind === 'file' ? route : null
}

function passOn(route: Route, query: string): Route {
  if (route.kind === 'file' || query === '') return route
  return { ...route, location: route.location + printable(query) }
}

// Node's parser accepts bytes above ASCII, which must not get into a header.
function printable(query: string): string {
  return query.replace(/[^\x21-\x7e]/g, encodeURIComponent)
}

/** Whether `accept` names HTML, or a range that holds it; without the header everything is accepted. */
export function acceptsHtml(accept: string | undefined): boolean {
  if (accept === undefined) return true
  return accept.split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';')
    const isHtml = /^\s*(?:text\/html|application\/xhtml\+xml|text\/\*|\*\/\*)\s*$/i.test(type)
    return isHtml && !parameters.some((text) => /^\s*q=0(?:\.0*)?\s*$/i.test(text))
  })
}

/** A path with an extension or a hidden segment is a missing file, not a view of a single-page app. */
function looksLikePage(path: string): boolean {
  return !path.slice(path.lastIndexOf('/') + 1).includes('.') && !path.includes('/.')
}
