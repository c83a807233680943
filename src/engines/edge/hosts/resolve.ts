// Resolves a path of a site: files first, then redirect rules, then fallbacks.
import { applyRedirects, type Redirected, type RedirectRule } from '../../../platform/site-rules/redirects.ts'
import type { FileRoute, RedirectRoute, Route } from '../answer/routes.ts'

export type SiteRoutes = {
  routes: ReadonlyMap<string, Route>
  redirects: readonly RedirectRule[]
  /** Whether any rule takes precedence over files. If none does, finding a file takes one lookup. */
  forced: boolean
  /** The page of a single-page app, served for every path that looks like a page; null if the site has none. */
  fallback: FileRoute | null
  /** The root's 404.html, if it exists. */
  notFound: FileRoute | null
}

export type Resolution = FileRoute | RedirectRoute | null

/** The parts of a request other than its URL that affect the result. */
export type RequestContext = {
  /** The visitor's Accept-Language. */
  language?: string | undefined
  /** Whether unknown paths get the page of a single-page app. */
  asApp?: boolean
}

const noContext: RequestContext = {}

/** `path` is decoded and starts with a slash; `query` is empty or starts with `?`. Null means 404. */
export function resolve(
  site: SiteRoutes,
  path: string,
  query: string,
  { language, asApp }: RequestContext = noContext,
): Resolution {
  const route = site.routes.get(path)
  if (route && !site.forced) return withQuery(route, query)
  const rule = site.redirects.length > 0 ? applyRedirects(site.redirects, path, query, language) : null
  if (route && !rule?.forced) return withQuery(route, query)
  if (rule) return follow(site, rule)
  if (asApp && site.fallback && looksLikePage(path)) return site.fallback
  return site.notFound
}

function follow(site: SiteRoutes, rule: Redirected): Resolution {
  if (rule.kind === 'redirect') return { kind: 'redirect', location: rule.location, status: rule.status }
  const found = fileAt(site.routes, rule.path)
  // A copy, because the route caches the headers of its own path.
  return found ? { kind: 'file', path: found.path, file: found.file, status: rule.status } : site.notFound
}

/** The file that a rewrite names by any of its paths. */
function fileAt(routes: ReadonlyMap<string, Route>, path: string): FileRoute | null {
  let route = routes.get(path)
  // A page's other paths redirect to its canonical path, which always has a file.
  if (route?.kind === 'redirect') route = routes.get(decodeURIComponent(route.location))
  return route?.kind === 'file' ? route : null
}

function withQuery(route: Route, query: string): Route {
  if (route.kind === 'file' || query === '') return route
  return { ...route, location: route.location + printable(query) }
}

// Node's parser accepts bytes above ASCII, which are invalid in headers.
function printable(query: string): string {
  return query.replace(/[^\x21-\x7e]/g, encodeURIComponent)
}

/** Whether an Accept header includes HTML, directly or by a range. A missing header accepts everything. */
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
