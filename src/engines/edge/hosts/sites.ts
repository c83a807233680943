// Caches deployments ready to be served (routes and rules), loaded on the first request.
import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { type Artifacts, appPages, type Manifest } from '../../../platform/artifacts/artifacts.ts'
import {
  type ExtraHeaders,
  type HeaderBlock,
  headersOf,
  matchingBlocks,
  parseHeaders,
} from '../../../platform/site-rules/header-rules.ts'
import { maxRulesLength, parseRedirects, type RedirectRule } from '../../../platform/site-rules/redirects.ts'
import { buildRoutes, buildRoutesInSteps, type FileRoute, type Route } from '../answer/routes.ts'
import { createVariants, type Variants } from '../answer/variants.ts'
import type { SiteRoutes } from './resolve.ts'

export type Site = SiteRoutes & {
  deploymentId: string
  kind: Manifest['kind']
  /** Whether the build detected a single-page app. */
  isApp: boolean
  /** Whether its URLs lack .html. Changing this project setting reloads the site. */
  cleanUrls: boolean
  /** The blocks of _headers that require a name and a password. */
  guards: readonly HeaderBlock[]
  /** Whether a rule depends on the visitor's language. */
  byLanguage: boolean
  /** Whether responses depend on nothing but the path and the common headers that plain requests may have. */
  plain: boolean
  /** The variants of a file at a path, because header rules match the requested path. */
  variantsOf(route: FileRoute, path: string): Variants
}

export type Sites = {
  /** The site if it is loaded with this setting; the hot path. */
  get(deploymentId: string, cleanUrls?: boolean | null): Site | undefined
  /** Null if the deployment has no files here. `cleanUrls` overrides the manifest. */
  load(deploymentId: string, cleanUrls?: boolean | null): Promise<Site | null>
  /** Requests the repair of a deployment whose manifest is missing or damaged. */
  report(deploymentId: string): Promise<void>
}

const none: ExtraHeaders = new Map()
// Measured memory use: of a site, of a file with its paths, of the variants of a file at one path.
const bytesPerSite = 1_200
const bytesPerFile = 450
const bytesPerAnswer = 900
const bytesPerRule = 300
const bytesPerPassword = 200
// Header rules are stored as text for each visited path, and again in rendered heads.
const copiesOfHeaders = 3
const maxBytes = 24 << 20
const maxSites = 20_000
const maxShared = 1_000
// Larger sites load one at a time, in steps, using half of the CPU time. Otherwise somebody who alternates between large
// sites that evict each other could slow down all other sites.
const manyFiles = 2_000
const stepMs = 5
const maxLarge = 10_000

export type SiteRules = { redirects: RedirectRule[]; headers: HeaderBlock[]; routes?: Map<string, Route> }

export function buildSite(
  deploymentId: string,
  manifest: Manifest,
  { redirects, headers, routes = buildRoutes(manifest) }: SiteRules,
  onGrowth: (bytes: number) => void = () => {},
): Site {
  const { kind, files, spaFallback: isApp, cleanUrls } = manifest
  const guards = headers.filter(({ credentials }) => credentials)
  const byLanguage = redirects.some(({ languages }) => languages)
  return {
    deploymentId,
    kind,
    isApp,
    cleanUrls,
    guards,
    byLanguage,
    plain: kind === 'static' && guards.length === 0 && !byLanguage,
    routes,
    redirects,
    forced: redirects.some((rule) => rule.forced),
    fallback: appPages.map((name) => pageOf(files, name, 200)).find((page) => page !== null) ?? null,
    notFound: pageOf(files, '404.html', 404),
    variantsOf: createVariantCache(routes, headers, onGrowth),
  }
}

function pageOf(files: Manifest['files'], path: string, status: 200 | 404): FileRoute | null {
  return Object.hasOwn(files, path) ? { kind: 'file', path, file: files[path]!, status } : null
}

// A separate function, so that its closure doesn't retain the manifest, which is half of a site's size.
function createVariantCache(
  routes: ReadonlyMap<string, Route>,
  blocks: HeaderBlock[],
  onGrowth: (bytes: number) => void,
): Site['variantsOf'] {
  // Variants at paths without a file of their own, by file, status and matching header blocks.
  const shared = new Map<string, Variants>()
  return (route, path) => {
    if (route.variants) return route.variants
    const indexes = blocks.length > 0 ? matchingBlocks(blocks, path) : []
    const create = () => {
      const extra = indexes.length > 0 ? headersOf(blocks, indexes) : none
      onGrowth(bytesPerAnswer + copiesOfHeaders * lengthOf(extra))
      return createVariants(route.path, route.file, route.status, extra)
    }
    if (routes.get(path) === route) {
      route.variants = create()
      return route.variants
    }
    const key = `${route.status} ${indexes.join()} ${route.path}`
    let variants = shared.get(key)
    if (!variants) {
      variants = create()
      if (shared.size >= maxShared) shared.clear()
      shared.set(key, variants)
    }
    return variants
  }
}

function lengthOf(headers: ExtraHeaders): number {
  let length = 0
  for (const [name, value] of headers) length += name.length + value.length
  return length
}

export function createSites(artifacts: Artifacts, log: Logger): Sites {
  const loaded = new LRUCache<string, Site>({ max: maxSites, maxSize: maxBytes })
  const loading = new Map<string, Promise<Site | null>>()
  /** Deployments known to have many files. */
  const large = new LRUCache<string, true>({ max: maxLarge })
  let turn: Promise<unknown> = Promise.resolve()

  function queue<T>(work: () => Promise<T>): Promise<T> {
    const mine = turn.then(work)
    turn = mine.catch(() => {})
    return mine
  }

  async function rulesOf(manifest: Manifest, name: string): Promise<string> {
    const file = Object.hasOwn(manifest.files, name) ? manifest.files[name]! : null
    if (!file || file.size > maxRulesLength) return ''
    return (await artifacts.load(file.hash)).toString()
  }

  function readOrQueue(deploymentId: string, cleanUrls: boolean | null): Promise<Site | null> {
    const known = large.has(deploymentId)
    const now = () => readSite(deploymentId, cleanUrls, known)
    return known ? queue(now) : now()
  }

  async function readSite(deploymentId: string, cleanUrls: boolean | null, known: boolean): Promise<Site | null> {
    const startedMs = performance.now()
    const published = await artifacts.read(deploymentId)
    if (!published) return null
    const manifest = cleanUrls === null ? published : { ...published, cleanUrls }
    if (Object.keys(manifest.files).length <= manyFiles)
      return createSite(deploymentId, manifest, buildRoutes(manifest))
    large.set(deploymentId, true)
    const build = async () => {
      await sleep(performance.now() - startedMs)
      return createSite(deploymentId, manifest, await runInSteps(buildRoutesInSteps(manifest)))
    }
    return known ? build() : queue(build)
  }

  async function createSite(deploymentId: string, manifest: Manifest, routes: Map<string, Route>): Promise<Site> {
    const texts = [await rulesOf(manifest, '_redirects'), await rulesOf(manifest, '_headers')] as const
    const redirects = parseRedirects(texts[0])
    const headers = parseHeaders(texts[1])
    const notes = [...redirects.notes, ...headers.notes]
    if (notes.length > 0) log.info({ deploymentId, notes: notes.slice(0, 20) }, 'rules of a site were left out')
    let size = bytesPerSite + Object.keys(manifest.files).length * bytesPerFile
    size += (redirects.rules.length + headers.blocks.length) * bytesPerRule
    // Substrings retain the whole text in memory.
    size += texts[0].length + texts[1].length
    for (const { credentials } of headers.blocks) size += (credentials?.length ?? 0) * bytesPerPassword
    const rules = { redirects: redirects.rules, headers: headers.blocks, routes }
    const site = buildSite(deploymentId, manifest, rules, (bytes) => {
      size += bytes
      // Doesn't bring back a site that was evicted in the meantime.
      if (loaded.peek(deploymentId) === site) loaded.set(deploymentId, site, { size })
    })
    loaded.set(deploymentId, site, { size })
    return site
  }

  return {
    get(deploymentId, cleanUrls = null) {
      const site = loaded.get(deploymentId)
      return cleanUrls === null || site?.cleanUrls === cleanUrls ? site : undefined
    },
    report: artifacts.report,
    load(deploymentId, cleanUrls = null) {
      const key = `${deploymentId} ${cleanUrls}`
      let site = loading.get(key)
      if (!site) {
        site = readOrQueue(deploymentId, cleanUrls).finally(() => loading.delete(key))
        loading.set(key, site)
      }
      return site
    },
  }
}

/** Works for a few milliseconds at a time and pauses for as long. */
async function runInSteps<T>(steps: Generator<undefined, T>): Promise<T> {
  for (;;) {
    const startedMs = performance.now()
    do {
      const { done, value } = steps.next()
      if (done) return value
    } while (performance.now() - startedMs < stepMs)
    await sleep(performance.now() - startedMs)
  }
}
