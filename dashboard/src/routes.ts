// Every path of the console and its screen; the server serves the console at these paths.
import type { Route, Screen } from './kit/router.tsx'
import Overview from './screens/overview.tsx'
import SignIn from './screens/sign-in.tsx'

/** Loaded after the first screen, or earlier if one of them is opened. */
export const loadScreens = () => import('./screens/all.ts')

const loaded = (screen: Screen) => async () => ({ default: screen })
type Name = Exclude<keyof Awaited<ReturnType<typeof loadScreens>>, 'Search'>
const lazy = (name: Name) => async () => ({
  default: (await loadScreens())[name] as Screen,
})

export const routes: Route[] = [
  { path: '/', title: 'Projects', load: loaded(Overview) },
  { path: '/projects', title: 'Projects', load: loaded(Overview) },
  { path: '/projects/:name/:tab?', title: 'Project', load: lazy('Project') },
  { path: '/deployments', title: 'Deployments', load: lazy('Deployments') },
  { path: '/deployments/:id', title: 'Deployment', load: lazy('Deployment') },
  { path: '/domains', title: 'Domains', load: lazy('Domains') },
  { path: '/domains/:name', title: 'Domain', load: lazy('Domain') },
  { path: '/dns', title: 'DNS', load: lazy('Zones') },
  { path: '/dns/:domain', title: 'Zone', load: lazy('Zone') },
  { path: '/events', title: 'Events', load: lazy('Events') },
  { path: '/webhooks', title: 'Webhooks', load: lazy('Webhooks') },
  { path: '/webhooks/:id', title: 'Webhook', load: lazy('Webhook') },
  { path: '/tokens/:id?', title: 'Tokens', load: lazy('Tokens') },
  { path: '/tickets', title: 'Tickets', load: lazy('Tickets') },
  { path: '/tickets/:id', title: 'Ticket', load: lazy('Ticket') },
  { path: '/members', title: 'Members', load: lazy('Members') },
  { path: '/account', title: 'Account', load: lazy('Account') },
  { path: '/device', title: 'Sign in a program', load: lazy('Device') },
  { path: '/me', title: 'You', load: lazy('Me') },
  { path: '/operator/:section?/:id?', title: 'Operator', load: lazy('Operator') },
  { path: '/sign-in', title: 'Sign in', bare: true, load: loaded(SignIn) },
  { path: '/setup', title: 'Set up', bare: true, load: lazy('Setup') },
]
