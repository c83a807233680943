// Routes URLs to screens: plain links, history, titles, focus and scroll. Screens are loaded when first shown.
import { signal } from '@preact/signals'
import { type ComponentType, h } from 'preact'
import { useEffect, useErrorBoundary, useLayoutEffect, useState } from 'preact/hooks'
import { ProblemView } from './feedback.tsx'

export type Params = Record<string, string>
export type Screen = ComponentType<{ params: Params }>
export type Route = {
  /** `/projects/:name/:tab?` */
  path: string
  title: string
  load(): Promise<{ default: Screen }>
  /** Without navigation or session. */
  bare?: boolean
}
export type PageUrl = { path: string; search: string; hash: string }

const read = (): PageUrl => ({ path: location.pathname, search: location.search, hash: location.hash })

/** The current URL; components that read it rerender when it changes. */
export const currentUrl = signal<PageUrl>(read())

type GoOptions = { replace?: boolean /** Keeps scroll and focus, because only the query changes. */; quiet?: boolean }
let table: Route[] = []
let arrival: { scroll: number } | null = null

export function go(url: string, { replace = false, quiet = false }: GoOptions = {}): void {
  if (replace) history.replaceState(history.state, '', url)
  else {
    history.replaceState({ scroll: scrollY }, '')
    history.pushState(null, '', url)
  }
  if (!quiet) arrival = { scroll: 0 }
  currentUrl.value = read()
}

/** A query parameter, such as a filter; the empty string removes it. */
export function useParam(name: string): [string, (value: string) => void] {
  const value = new URLSearchParams(currentUrl.value.search).get(name) ?? ''
  return [
    value,
    (next) => {
      const params = new URLSearchParams(currentUrl.peek().search)
      if (next) params.set(name, next)
      else params.delete(name)
      const search = params.toString()
      go(currentUrl.peek().path + (search && `?${search}`), { replace: true, quiet: true })
    },
  ]
}

/** Sets the window's title. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Berth`
  }, [title])
}

function match(pattern: string, path: string): Params | null {
  const parts = path.replace(/(.)\/$/, '$1').split('/')
  const patternParts = pattern.split('/')
  if (parts.length > patternParts.length) return null
  const params: Params = {}
  for (const [index, name] of patternParts.entries()) {
    const part = parts[index]
    if (!name.startsWith(':')) {
      if (part !== name) return null
    } else if (part) {
      try {
        params[name.slice(1).replace('?', '')] = decodeURIComponent(part)
      } catch {
        return null
      }
    } else if (!name.endsWith('?')) return null
  }
  return params
}

export function findRoute(path: string): { route: Route; params: Params } | null {
  for (const route of table) {
    const params = match(route.path, path)
    if (params) return { route, params }
  }
  return null
}

/** Starts handling links and the history. */
export function startRouter(routes: Route[]): void {
  table = routes
  history.scrollRestoration = 'manual'
  addEventListener('popstate', (event) => {
    arrival = { scroll: event.state?.scroll ?? 0 }
    currentUrl.value = read()
  })
  document.addEventListener('click', (event) => {
    const link = (event.target as Element).closest?.('a')
    if (!link || event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    if (link.origin !== location.origin || link.target || link.hasAttribute('download')) return
    if (!findRoute(link.pathname) || (link.hash && link.pathname === location.pathname)) return
    event.preventDefault()
    go(link.pathname + link.search + link.hash)
  })
}

const loaded = new Map<Route, Screen>()
const reloadedKey = 'reloaded'

async function load(route: Route): Promise<Screen> {
  try {
    const screen = (await route.load()).default
    loaded.set(route, screen)
    sessionStorage.removeItem(reloadedKey)
    return screen
  } catch (error) {
    // The server was upgraded: its files have other names.
    if (!sessionStorage.getItem(reloadedKey)) {
      sessionStorage.setItem(reloadedKey, '1')
      location.reload()
    }
    throw error
  }
}

/** The screen of the current URL. */
export function Outlet() {
  const { path } = currentUrl.value
  const found = findRoute(path)
  if (!found) return <NotFound />
  return <LoadedScreen key={found.route.path} {...found} />
}

function LoadedScreen({ route, params }: { route: Route; params: Params }) {
  const [screen, setScreen] = useState<{ of: Screen } | null>(loaded.has(route) ? { of: loaded.get(route)! } : null)
  const [failure, setFailure] = useState<unknown>(null)
  const [crash, retry] = useErrorBoundary((error) => console.error(error))
  useTitle(route.title)
  useEffect(() => {
    if (!screen) load(route).then((of) => setScreen({ of }), setFailure)
  }, [])
  const { path } = currentUrl.value
  useLayoutEffect(() => {
    if (!screen || !arrival) return
    const { scroll } = arrival
    arrival = null
    return focusHeading(scroll)
  }, [screen, path])
  if (crash || failure) return <ProblemView error={crash ?? failure} retry={crash ? retry : () => location.reload()} />
  // The key discards the state of another project's screen.
  return screen ? (
    h(screen.of, { params, key: Object.values({ ...params, tab: '' }).join('/') })
  ) : (
    <div aria-busy="true" />
  )
}

/** Focuses the heading for screen readers and the keyboard, also if the screen shows or replaces it after loading. */
function focusHeading(scroll: number): () => void {
  const before = document.activeElement
  let focused: Element | null = null
  const focus = () => {
    if (focused?.isConnected) return
    const heading = document.querySelector<HTMLElement>('main h1')
    const { activeElement, body } = document
    // Don't take the focus from where the person moved it meanwhile.
    if (!heading || (activeElement !== before && activeElement !== body)) return
    heading.tabIndex = -1
    heading.focus({ preventScroll: true })
    if (!focused) scrollTo(0, scroll)
    focused = heading
  }
  focus()
  const observer = new MutationObserver(focus)
  observer.observe(document.querySelector('main')!, { childList: true, subtree: true })
  return () => observer.disconnect()
}

function NotFound() {
  useTitle('Not found')
  return (
    <>
      <div class="top">
        <h1>Page not found</h1>
      </div>
      <p>
        The console has no page at this URL. <a href="/">Go to the projects</a>
      </p>
    </>
  )
}
