// The list of problems on the overview, each with its cause and a link to the next step.
import type { ComponentChildren } from 'preact'
import { call, may, num, Panel, type Schemas, State, type Tone, useQuery } from '../kit/index.ts'
import { account } from '../shell/account.ts'
import type { Production } from './overview-data.ts'

type Need = { key: string; tone: Tone; name: string; says: ComponentChildren; href: string; step: string }

type Props = {
  projects: Schemas['Project'][] | undefined
  production: Map<string, Production> | undefined
  domains: Schemas['Domain'][] | undefined
}

// More of them are on their own screens.
const maxShown = 8

export function NeedsYou({ projects = [], production, domains = [] }: Props) {
  const tickets = useQuery(
    may('tickets:read') ? call('get', '/tickets', { params: { query: { status: ['WAITING'], limit: 5 } } }) : null,
    { on: ['ticket.*'] },
  )
  const webhooks = useQuery(
    may('webhooks:read') ? call('get', '/webhooks', { params: { query: { limit: 50 } } }) : null,
    { on: ['webhook.*'] },
  )
  const needs = [
    ...projects.flatMap((project) => projectNeeds(project, production?.get(project.name))),
    ...domains.flatMap(domainNeeds),
    ...limitNeeds(),
    ...(tickets.data?.tickets ?? []).map(
      (ticket): Need => ({
        key: ticket.id,
        tone: 'busy',
        name: ticket.subject,
        says: 'Support is waiting for your reply.',
        href: `/tickets/${ticket.id}`,
        step: 'Read and reply',
      }),
    ),
    ...(webhooks.data?.webhooks ?? [])
      .filter(({ active }) => !active)
      .map(
        (hook): Need => ({
          key: hook.id,
          tone: 'off',
          name: hostIn(hook.url),
          says: 'This webhook is off.',
          href: `/webhooks/${hook.id}`,
          step: 'See its deliveries',
        }),
      ),
  ]
  if (needs.length === 0) return null
  return (
    <Panel title="Needs attention" note={needs.length > maxShown ? `${maxShown} of ${num(needs.length)}` : undefined}>
      <ul class="needs">
        {needs.slice(0, maxShown).map(({ key, tone, name, says, href, step }) => (
          <li key={key}>
            <p>
              <State is={tone}>{name}</State> {says} <a href={href}>{step}</a>
            </p>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function hostIn(url: string): string {
  try {
    return new URL(url).host
  } catch {
    return url
  }
}

function projectNeeds(project: Schemas['Project'], production: Production | undefined): Need[] {
  const href = `/projects/${project.name}`
  if (project.takedown) {
    const says = 'The operator took it down.'
    return [{ key: project.id, tone: 'bad', name: project.name, says, href, step: 'See why' }]
  }
  const latest = production?.latest
  if (latest?.state !== 'ERROR') return []
  const { current } = production!
  const says = (
    <>
      {firstLine(latest.error?.message) || 'The last deployment failed.'}{' '}
      {current ? (
        <>
          Production stays on <code>{current.commit}</code>.
        </>
      ) : (
        'Nothing is in production.'
      )}
    </>
  )
  return [
    { key: project.id, tone: 'bad', name: project.name, says, href: `/deployments/${latest.id}`, step: 'See the log' },
  ]
}

function firstLine(text = ''): string {
  const line = text.split('\n', 1)[0]!
  return line.length > 160 ? `${line.slice(0, 160)}…` : line
}

function domainNeeds(domain: Schemas['Domain']): Need[] {
  const { name, verified, ssl, certificate, verification } = domain
  const need = { key: name, name, href: `/domains/${encodeURIComponent(name)}` }
  if (domain.takedown) return [{ ...need, tone: 'bad', says: 'The operator took it down.', step: 'See why' }]
  if (!verified) {
    return [
      { ...need, tone: 'busy', says: verification.reason ?? "It doesn't point here yet.", step: 'See what to set' },
    ]
  }
  if (ssl === 'ERROR' || ssl === 'EXPIRED') {
    const cause = firstLine(certificate?.lastError ?? '')
    const what = ssl === 'EXPIRED' ? 'Its certificate has expired.' : "We couldn't issue its certificate."
    return [{ ...need, tone: 'bad', says: `${what} ${cause}`, step: 'See the certificate' }]
  }
  if (certificate?.lastError && certificate.notAfter) {
    const says = `We couldn't renew its certificate. ${firstLine(certificate.lastError)}`
    return [{ ...need, tone: 'busy', says, step: 'See the certificate' }]
  }
  return []
}

const watched = {
  buildMinutesPerMonth: 'build minutes this month',
  storedBytes: 'storage',
  projects: 'projects',
  domains: 'domains',
  tokens: 'tokens',
} as const

function limitNeeds(): Need[] {
  const current = account.value
  if (!current) return []
  return Object.entries(watched).flatMap(([key, words]) => {
    const name = key as keyof typeof watched
    const part = (current.usage[name] ?? 0) / current.limits[name]
    if (!(part >= 0.9)) return []
    const says = `${Math.floor(part * 100)}% of the ${words} used.`
    return [{ key, tone: 'busy' as const, name: current.name, says, href: '/account', step: 'See the limits' }]
  })
}
