// Every path of a site that leads to a file, computed once from its manifest.
import type { Manifest, StoredFile } from '../../../platform/artifacts/artifacts.ts'
import { encodePath } from '../../../platform/site-rules/patterns.ts'
import type { Variants } from './variants.ts'

export type FileRoute = {
  kind: 'file'
  /** Path in the manifest. */
  path: string
  file: StoredFile
  status: 200 | 404
  /** Created at the first request. */
  variants?: Variants
}

export type RedirectRoute = { kind: 'redirect'; location: string; status: 301 | 302 | 303 | 307 | 308 }

export type Route = FileRoute | RedirectRoute

/**
 * Routes by decoded path. Only these are ever served, so no spelling of `..` can escape the site.
 *
 * Trailing slashes: every page has one address. `about.html` is `/about`, `docs/index.html` is `/docs/`, and the other
 * spelling redirects there, because relative links mean something else with and without the slash. With both
 * `docs.html` and `docs/index.html`, each keeps its own.
 */
export function buildRoutes(manifest: Paths): Map<string, Route> {
  const steps = buildRoutesInSteps(manifest)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

type Paths = Pick<Manifest, 'files' | 'cleanUrls'>

// Less than a millisecond of the event loop.
const pathsInAStep = 100

/** The same in steps, so that others are answered between them: fifty thousand files take half a second. */
export function* buildRoutesInSteps({ files, cleanUrls }: Paths): Generator<undefined, Map<string, Route>> {
  const routes = new Map<string, Route>()
  const pages: [path: string, file: StoredFile][] = []
  let steps = 0
  for (const [path, file] of Object.entries(files)) {
    if (++steps % pathsInAStep === 0) yield
    if (!isPublic(path)) continue
    if (path.endsWith('.html')) pages.push([path, file])
    else routes.set(`/${path}`, { kind: 'file', path, file, status: 200 })
  }
  const fileAt = (address: string, path: string, file: StoredFile) => {
    // The error page itself answers with 404 at its own path.
    if (!routes.has(address)) routes.set(address, { kind: 'file', path, file, status: path === '404.html' ? 404 : 200 })
  }
  const redirectAt = (address: string, to: string) => {
    if (!routes.has(address)) routes.set(address, { kind: 'redirect', location: encodePath(to), status: 308 })
  }
  for (const [path, file] of pages) {
    if (++steps % pathsInAStep === 0) yield
    const address = `/${path}`
    if (address.endsWith('/index.html')) {
      fileAt(address.slice(0, -'index.html'.length), path, file)
      if (!cleanUrls) fileAt(address, path, file)
    } else fileAt(cleanUrls ? address.slice(0, -'.html'.length) : address, path, file)
  }
  // Files take precedence over redirects, so redirects are added after all files.
  for (const [path] of pages) {
    if (++steps % pathsInAStep === 0) yield
    const address = `/${path}`
    const bare = address.slice(0, -'.html'.length)
    if (!address.endsWith('/index.html')) {
      // If a file already has the clean path of a page, the page keeps its own path.
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

/** Dot files are not meant for visitors (.env, .git), except those in .well-known. */
function isPublic(path: string): boolean {
  if (path === '_redirects' || path === '_headers') return false
  const rest = path.startsWith('.well-known/') ? path.slice('.well-known/'.length) : path
  return !rest.startsWith('.') && !rest.includes('/.')
}
