// The links of the navigation, in order.
type Link = {
  href: string
  text: string
  /** The scope it requires; null: none. */
  scope: string | null
  /** The number to show, unless it is 0. */
  count?: 'projects' | 'domains' | 'openTickets'
  /** The prefix of its resources' screens, if it isn't `href`. */
  below?: string
}

export const links: Link[] = [
  { href: '/', text: 'Projects', scope: 'projects:read', count: 'projects', below: '/projects' },
  { href: '/deployments', text: 'Deployments', scope: 'deployments:read' },
  { href: '/domains', text: 'Domains', scope: 'domains:read', count: 'domains' },
  { href: '/dns', text: 'DNS', scope: 'dns:read' },
  { href: '/events', text: 'Events', scope: 'events:read' },
  { href: '/webhooks', text: 'Webhooks', scope: 'webhooks:read' },
  { href: '/tokens', text: 'Tokens', scope: 'tokens:read' },
  { href: '/tickets', text: 'Tickets', scope: 'tickets:read', count: 'openTickets' },
  { href: '/members', text: 'Members', scope: 'members:read' },
  { href: '/account', text: 'Account', scope: null },
  { href: '/operator', text: 'Operator', scope: 'operator' },
]
