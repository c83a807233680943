// From a path and a site to what is served there: its files first, then its rules, then its fallbacks.
import { applyRedirects, type Redirected, type RedirectRule } from './redirects.ts'
import type { FileRoute, RedirectRoute, Route } from './routes.ts'

export type Addresses = {
  routes: ReadonlyMap<string, Route>
  redirects: readonly RedirectRule[]
  /** Whether a rule may win over a file; without one, files are found by one look-up. */
  forced: boolean
  /** index.html of a single-page app, for every path that looks like a page; null for other sites. */
  fallback: FileRoute | null
  /** 404.html of the root, if there is one. */
  notFound: FileRoute | null
}

export type Resolution = FileRoute | RedirectRoute | null

/** `path` is decoded and starts with a slash; `query` is '' or starts with `?`. Null: there is nothing here. */
export function resolve(site: Addresses, path: string, query: string): Resolution {
  const route = site.routes.get(path)
  if (route && !site.forced) return passOn(route, query)
  const rule = site.redirects.length > 0 ? applyRedirects(site.redirects, path, query) : null
  if (route && !rule?.forced) return passOn(route, query)
  if (rule) return follow(site, rule)
  if (site.fallback && looksLikePage(path)) return site.fallback
  return site.notFound
}

function follow(site: Addresses, rule: Redirected): Resolution {
  if (rule.kind === 'redirect') return { kind: 'redirect', location: rule.location, status: rule.status }
  const found = fileAt(site.routes, rule.path)
  // Not the route itself: it keeps the headers of its own address.
  return found ? { kind: 'file', path: found.path, file: found.file, status: rule.status } : site.notFound
}

/** The file a rewrite names, whichever of its addresses the rule uses: the visitor's own address stays as it is. */
function fileAt(routes: ReadonlyMap<string, Route>, path: string): FileRoute | null {
  let route = routes.get(path)
  // Pages redirect to their one address within the site; each of those leads to a file at once.
  if (route?.kind === 'redirect') route = routes.get(decodeURIComponent(route.location))
  return route?.kind === 'file' ? route : null
}

function passOn(route: Route, query: string): Route {
  if (route.kind === 'file' || query === '') return route
  return { ...route, location: route.location + printable(query) }
}

// The parser lets bytes above ASCII through; a header is no place for them.
function printable(query: string): string {
  return query.replace(/[^\x21-\x7e]/g, encodeURIComponent)
}

/** A path that names a file (by extension) or something hidden is missing, not a view of a single-page app. */
function looksLikePage(path: string): boolean {
  return !path.slice(path.lastIndexOf('/') + 1).includes('.') && !path.includes('/.')
}
