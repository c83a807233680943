// The places one goes to, and at the foot whether the page is live and who is signed in.
import { live, offlineSince } from '../kit/live.ts'
import { place } from '../kit/router.tsx'
import { access, may, me } from '../kit/session.ts'
import { State, type Tone } from '../kit/state.tsx'
import { Time } from '../kit/time.tsx'

const places = [
  { href: '/', text: 'Projects', scope: 'projects:read', also: '/projects' },
  { href: '/deployments', text: 'Deployments', scope: 'deployments:read' },
  { href: '/domains', text: 'Domains', scope: 'domains:read' },
  { href: '/dns', text: 'DNS', scope: 'dns:read' },
  { href: '/events', text: 'Events', scope: 'events:read' },
  { href: '/webhooks', text: 'Webhooks', scope: 'webhooks:read' },
  { href: '/tokens', text: 'Tokens', scope: 'tokens:read' },
  { href: '/tickets', text: 'Tickets', scope: 'tickets:read' },
  { href: '/members', text: 'Members', scope: 'members:read' },
  { href: '/account', text: 'Account', scope: null },
  { href: '/operator', text: 'Operator', scope: 'operator' },
] as const

export function Navigation() {
  const { path } = place.value
  const isHere = (href: string, also?: string) =>
    path === href || [href, also].some((start) => start && start !== '/' && path.startsWith(`${start}/`))
  return (
    <nav class="side" aria-label="Main">
      <a class="brand" href="/">
        <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
          <path d="M4 3v14M4 10h7a3.5 3.5 0 0 1 0 7H4M4 3h6a3.5 3.5 0 0 1 0 7" />
        </svg>
        Berth
      </a>
      {places
        .filter(({ scope }) => scope === null || may(scope))
        .map((it) => (
          <a
            key={it.href}
            href={it.href}
            aria-current={isHere(it.href, 'also' in it ? it.also : undefined) ? 'page' : undefined}
          >
            {it.text}
          </a>
        ))}
      <div class="foot soft">
        <LiveState />
        {me.value && (
          <a href="/me">
            {me.value.user.email} · {access.value?.role}
          </a>
        )}
      </div>
    </nav>
  )
}

const words: Record<typeof live.value, [Tone, string]> = {
  connecting: ['busy', 'Connecting'],
  live: ['ready', 'Live'],
  offline: ['bad', 'Offline'],
  off: ['off', 'Not live'],
}

function LiveState() {
  const [tone, word] = words[live.value]
  return (
    <div role="status">
      <State is={tone}>{word}</State>
      {offlineSince.value !== null && (
        <>
          {' '}
          since <Time at={offlineSince.value} form="clock" />
        </>
      )}
    </div>
  )
}
