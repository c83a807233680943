// Every address of the console and the screen that shows it; the server answers these paths with the console.
import type { Route, Screen } from './kit/router.tsx'
import Overview from './screens/overview.tsx'
import SignIn from './screens/sign-in.tsx'

/** Loaded when the first screen is there, or when one of them is wanted before. */
export const loadScreens = () => import('./screens/all.ts')

const now = (screen: Screen) => async () => ({ default: screen })
type Name = Exclude<keyof Awaited<ReturnType<typeof loadScreens>>, 'Search'>
const later = (name: Name) => async () => ({
  default: (await loadScreens())[name] as Screen,
})

export const routes: Route[] = [
  { path: '/', title: 'Projects', load: now(Overview) },
  { path: '/projects', title: 'Projects', load: now(Overview) },
  { path: '/projects/:name/:tab?', title: 'Project', load: later('Project') },
  { path: '/deployments', title: 'Deployments', load: later('Deployments') },
  { path: '/deployments/:id', title: 'Deployment', load: later('Deployment') },
  { path: '/domains', title: 'Domains', load: later('Domains') },
  { path: '/domains/:name', title: 'Domain', load: later('Domain') },
  { path: '/dns', title: 'DNS', load: later('Zones') },
  { path: '/dns/:domain', title: 'Zone', load: later('Zone') },
  { path: '/events', title: 'Events', load: later('Events') },
  { path: '/webhooks', title: 'Webhooks', load: later('Webhooks') },
  { path: '/webhooks/:id', title: 'Webhook', load: later('Webhook') },
  { path: '/tokens/:id?', title: 'Tokens', load: later('Tokens') },
  { path: '/tickets', title: 'Tickets', load: later('Tickets') },
  { path: '/tickets/:id', title: 'Ticket', load: later('Ticket') },
  { path: '/members', title: 'Members', load: later('Members') },
  { path: '/account', title: 'Account', load: later('Account') },
  { path: '/device', title: 'Sign in a program', load: later('Device') },
  { path: '/me', title: 'You', load: later('Me') },
  { path: '/operator/:section?/:id?', title: 'Operator', load: later('Operator') },
  { path: '/sign-in', title: 'Sign in', bare: true, load: now(SignIn) },
  { path: '/setup', title: 'Set up', bare: true, load: later('Setup') },
]
