// Computes all paths of a site from its manifest, once per site.
import type { Manifest, StoredFile } from '../../../platform/artifacts/artifacts.ts'
import { encodePath } from '../../../platform/site-rules/patterns.ts'
import type { Variants } from './variants.ts'

export type FileRoute = {
  kind: 'file'
  /** The path in the manifest. */
  path: string
  file: StoredFile
  status: 200 | 404
  /** Created by the first request. */
  variants?: Variants
}

export type RedirectRoute = { kind: 'redirect'; location: string; status: 301 | 302 | 303 | 307 | 308 }

export type Route = FileRoute | RedirectRoute

/**
 * Routes by decoded path. Nothing else is ever served, so no spelling of `..` can escape the site.
 *
 * Every page has one URL: `about.html` is `/about`, `docs/index.html` is `/docs/`. The spelling with or without the
 * slash redirects there, because relative links resolve differently. If both `docs.html` and `docs/index.html` exist,
 * each keeps its own.
 */
export function buildRoutes(manifest: Paths): Map<string, Route> {
  const steps = buildRoutesInSteps(manifest)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

type Paths = Pick<Manifest, 'files' | 'cleanUrls'>

// Takes less than a millisecond.
const pathsPerStep = 100

/** Yields between steps, so that other requests are served meanwhile: 50,000 files take half a second. */
export function* buildRoutesInSteps({ files, cleanUrls }: Paths): Generator<undefined, Map<string, Route>> {
  const routes = new Map<string, Route>()
  const pages: [path: string, file: StoredFile][] = []
  let steps = 0
  for (const [path, file] of Object.entries(files)) {
    if (++steps % pathsPerStep === 0) yield
    if (!isPublic(path)) continue
    if (path.endsWith('.html')) pages.push([path, file])
    else routes.set(`/${path}`, { kind: 'file', path, file, status: 200 })
  }
  const fileAt = (address: string, path: string, file: StoredFile) => {
    // The error page responds with 404 at its own path too.
    if (!routes.has(address)) routes.set(address, { kind: 'file', path, file, status: path === '404.html' ? 404 : 200 })
  }
  const redirectAt = (address: string, to: string) => {
    if (!routes.has(address)) routes.set(address, { kind: 'redirect', location: encodePath(to), status: 308 })
  }
  for (const [path, file] of pages) {
    if (++steps % pathsPerStep === 0) yield
    const address = `/${path}`
    if (address.endsWith('/index.html')) {
      fileAt(address.slice(0, -'index.html'.length), path, file)
      if (!cleanUrls) fileAt(address, path, file)
    } else fileAt(cleanUrls ? address.slice(0, -'.html'.length) : address, path, file)
  }
  // Files take precedence over redirects, so redirects are added after all files.
  for (const [path] of pages) {
    if (++steps % pathsPerStep === 0) yield
    const address = `/${path}`
    const bare = address.slice(0, -'.html'.length)
    if (!address.endsWith('/index.html')) {
      // If another file has the clean path of a page, the page keeps its own path.
      const clean = routes.get(bare)
      if (!cleanUrls) continue
      if (clean?.kind === 'file' && clean.path !== path) fileAt(address, path, files[path]!)
      else redirectAt(address, bare)
      redirectAt(`${bare}/`, bare)
      continue
    }
    const folder = address.slice(0, -'index.html'.length)
    if (cleanUrls) {
      redirectAt(address, folder)
      redirectAt(bare, folder)
    }
    if (folder !== '/') redirectAt(folder.slice(0, -1), folder)
  }
  return routes
}

/** Dot files such as .env and .git are private, except in .well-known. */
function isPublic(path: string): boolean {
  if (path === '_redirects' || path === '_headers') return false
  const rest = path.startsWith('.well-known/') ? path.slice('.well-known/'.length) : path
  return !rest.startsWith('.') && !rest.includes('/.')
}
