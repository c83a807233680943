// Every address of the console and the screen that shows it; the server answers these paths with the console.
import type { Route } from './kit/router.tsx'

export const routes: Route[] = [
  { path: '/', title: 'Projects', load: () => import('./screens/overview.tsx') },
  { path: '/projects', title: 'Projects', load: () => import('./screens/overview.tsx') },
  { path: '/projects/:name/:tab?', title: 'Project', load: () => import('./screens/project.tsx') },
  { path: '/deployments', title: 'Deployments', load: () => import('./screens/deployments.tsx') },
  { path: '/deployments/:id', title: 'Deployment', load: () => import('./screens/deployment.tsx') },
  { path: '/domains', title: 'Domains', load: () => import('./screens/domains.tsx') },
  { path: '/domains/:name', title: 'Domain', load: () => import('./screens/domain.tsx') },
  { path: '/dns', title: 'DNS', load: () => import('./screens/zones.tsx') },
  { path: '/dns/:domain', title: 'Zone', load: () => import('./screens/zone.tsx') },
  { path: '/events', title: 'Events', load: () => import('./screens/events.tsx') },
  { path: '/webhooks', title: 'Webhooks', load: () => import('./screens/webhooks.tsx') },
  { path: '/webhooks/:id', title: 'Webhook', load: () => import('./screens/webhook.tsx') },
  { path: '/tokens/:id?', title: 'Tokens', load: () => import('./screens/tokens.tsx') },
  { path: '/tickets', title: 'Tickets', load: () => import('./screens/tickets.tsx') },
  { path: '/tickets/:id', title: 'Ticket', load: () => import('./screens/ticket.tsx') },
  { path: '/members', title: 'Members', load: () => import('./screens/members.tsx') },
  { path: '/account', title: 'Account', load: () => import('./screens/account.tsx') },
  { path: '/me', title: 'You', load: () => import('./screens/me.tsx') },
  { path: '/operator/:section?/:id?', title: 'Operator', load: () => import('./screens/operator.tsx') },
  { path: '/sign-in', title: 'Sign in', bare: true, load: () => import('./screens/sign-in.tsx') },
  { path: '/setup', title: 'Set up', bare: true, load: () => import('./screens/setup.tsx') },
]
