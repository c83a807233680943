// The places of the navigation, in its order.
type Place = {
  href: string
  text: string
  /** Who may go there; null: everybody. */
  scope: string | null
  /** Its number is shown, if it is not 0. */
  count?: 'projects' | 'domains' | 'openTickets'
  /** Where the screens of one of its things are, if not below `href`. */
  below?: string
}

export const places: Place[] = [
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
