// The address and the screen: plain links, history, titles, focus and scroll; screens are loaded when they are first shown.
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
  /** Shown without the navigation, and without a session. */
  bare?: boolean
}
export type Place = { path: string; search: string; hash: string }

const read = (): Place => ({ path: location.pathname, search: location.search, hash: location.hash })

/** Where we are; components that read it follow it. */
export const place = signal<Place>(read())

type Going = { replace?: boolean /** Only the query has changed: nothing is scrolled or focused. */; quiet?: boolean }
let table: Route[] = []
let arrived: { scroll: number } | null = null

export function go(url: string, { replace = false, quiet = false }: Going = {}): void {
  if (replace) history.replaceState(history.state, '', url)
  else {
    history.replaceState({ scroll: scrollY }, '')
    history.pushState(null, '', url)
  }
  if (!quiet) arrived = { scroll: 0 }
  place.value = read()
}

/** A parameter of the address, such as a filter; the empty string removes it. */
export function useParam(name: string): [string, (value: string) => void] {
  const value = new URLSearchParams(place.value.search).get(name) ?? ''
  return [
    value,
    (next) => {
      const params = new URLSearchParams(place.peek().search)
      if (next) params.set(name, next)
      else params.delete(name)
      const search = params.toString()
      go(place.peek().path + (search && `?${search}`), { replace: true, quiet: true })
    },
  ]
}

/** The name in the window's title; screens call it with what they show. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Berth`
  }, [title])
}

function match(pattern: string, path: string): Params | null {
  const parts = path.replace(/(.)\/$/, '$1').split('/')
  const wanted = pattern.split('/')
  if (parts.length > wanted.length) return null
  const params: Params = {}
  for (const [index, want] of wanted.entries()) {
    const part = parts[index]
    if (!want.startsWith(':')) {
      if (part !== want) return null
    } else if (part) {
      try {
        params[want.slice(1).replace('?', '')] = decodeURIComponent(part)
      } catch {
        return null
      }
    } else if (!want.endsWith('?')) return null
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

/** Begins to follow links and the history. */
export function startRouter(routes: Route[]): void {
  table = routes
  history.scrollRestoration = 'manual'
  addEventListener('popstate', (event) => {
    arrived = { scroll: event.state?.scroll ?? 0 }
    place.value = read()
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
    // The server has another version by now: its files have other names.
    if (!sessionStorage.getItem(reloadedKey)) {
      sessionStorage.setItem(reloadedKey, '1')
      location.reload()
    }
    throw error
  }
}

/** The screen of the address. */
export function Outlet() {
  const { path } = place.value
  const found = findRoute(path)
  if (!found) return <NotFound />
  return <Shown key={found.route.path} {...found} />
}

function Shown({ route, params }: { route: Route; params: Params }) {
  const [screen, show] = useState<{ of: Screen } | null>(loaded.has(route) ? { of: loaded.get(route)! } : null)
  const [failure, fail] = useState<unknown>(null)
  const [crash, retry] = useErrorBoundary((error) => console.error(error))
  useTitle(route.title)
  useEffect(() => {
    if (!screen) load(route).then((of) => show({ of }), fail)
  }, [])
  const { path } = place.value
  useLayoutEffect(() => {
    if (!screen || !arrived) return
    const { scroll } = arrived
    arrived = null
    return reachHeading(scroll)
  }, [screen, path])
  if (crash || failure) return <ProblemView error={crash ?? failure} retry={crash ? retry : () => location.reload()} />
  // Another project is another screen: nothing of the first one is kept.
  return screen ? (
    h(screen.of, { params, key: Object.values({ ...params, tab: '' }).join('/') })
  ) : (
    <div aria-busy="true" />
  )
}

/** Focuses the heading, for screen readers and the keyboard; a screen that reads first shows it later, or another one. */
function reachHeading(scroll: number): () => void {
  const before = document.activeElement
  let reached: Element | null = null
  const reach = () => {
    if (reached?.isConnected) return
    const heading = document.querySelector<HTMLElement>('main h1')
    const { activeElement, body } = document
    // Not away from where the person went meanwhile.
    if (!heading || (activeElement !== before && activeElement !== body)) return
    heading.tabIndex = -1
    heading.focus({ preventScroll: true })
    if (!reached) scrollTo(0, scroll)
    reached = heading
  }
  reach()
  const observer = new MutationObserver(reach)
  observer.observe(document.querySelector('main')!, { childList: true, subtree: true })
  return () => observer.disconnect()
}

function NotFound() {
  useTitle('Not found')
  return (
    <>
      <div class="top">
        <h1>Nothing is here</h1>
      </div>
      <p>
        The console has no page at this address. <a href="/">Go to the projects</a>
      </p>
    </>
  )
}
