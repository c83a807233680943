// `berth domains`: attaches, verifies and lists domains.
import type { Domain } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import { collect } from '../kit/collect.ts'
import type { Context } from '../kit/context.ts'
import { exitCodes } from '../kit/failures.ts'
import type { Output } from '../kit/output.ts'
import { checkProjectIfEmpty, findProject, requireProject } from '../kit/project.ts'
import { confirm } from '../kit/prompt.ts'
import { fromServer } from '../kit/shape.ts'
import { clean, time } from '../kit/text.ts'

export const list: Action<{ project?: string }> = async (context, _, options) => {
  const project = await findProject(context, options.project)
  const query = project ? { project: [project] } : {}
  const found = await collect((await context.berth()).list('/domains', { params: { query } }))
  await checkProjectIfEmpty(context, project, found)
  const heads = ['NAME', 'PROJECT', 'VERIFIED', 'SSL', 'CREATED']
  context.out.list(found, heads, (it: Domain) => [
    it.name,
    it.project,
    it.verified ? 'yes' : 'no',
    it.ssl,
    time(it.createdAt),
  ])
}

export const add: Action<{ project?: string; wait?: boolean }> = async (context, [name], options) => {
  const { out } = context
  const project = await requireProject(context, options.project)
  let domain = await (await context.berth()).post('/domains', { body: { project, name: name! } })
  out.say(`Attached ${clean(domain.name)} to ${clean(domain.project)}.`)
  if (!domain.verified) fromServer(() => sayRecordsToSet(domain, out))
  if (options.wait) domain = await watch(context, domain)
  out.show(domain, () => card(domain))
  return options.wait ? reportResult(domain, out) : exitCodes.ok
}

export const verify: Action<{ wait?: boolean }> = async (context, [name], options) => {
  const { out, signal } = context
  const berth = await context.berth()
  const path = { name: name! }
  let domain = await berth.post('/domains/{name}/verify', { params: { path } } as never)
  if (options.wait) domain = await watch(context, domain)
  // The check has just been requested: its result comes within seconds.
  else domain = await berth.get('/domains/{name}', { params: { path, query: { wait: 5 } }, signal } as never)
  if (!domain.verified) fromServer(() => sayRecordsToSet(domain, out))
  out.show(domain, () => card(domain))
  if (options.wait) return reportResult(domain, out)
  return domain.verified ? exitCodes.ok : exitCodes.failed
}

function sayRecordsToSet({ name, nameservers, verification: { txt } }: Domain, out: Output): void {
  out.say(`Set one of these for ${clean(name)}:`)
  out.say(`  nameservers at the registrar  ${nameservers.map(clean).join('  ')}`)
  out.say(`  TXT record in its DNS         ${clean(txt.name)}  ${clean(txt.value)}`)
}

/** Waits until the domain is verified and has its certificate, and prints each change. */
async function watch(context: Context, from: Domain): Promise<Domain> {
  const { out, signal } = context
  const berth = await context.berth()
  let domain = from
  let lastState = ''
  for (;;) {
    const now = fromServer(() => stateOf(domain))
    if (now !== lastState) out.say(now)
    lastState = now
    if (isSettled(domain)) return domain
    out.progress(`Waiting for ${domain.name} …`)
    const startedMs = Date.now()
    domain = await berth.get('/domains/{name}', {
      params: { path: { name: domain.name }, query: { wait: 30 } },
      signal,
    } as never)
    // A server at its limit of waiting requests responds at once.
    if (Date.now() - startedMs < 1_000 && !isSettled(domain)) await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

const isSettled = ({ verified, ssl }: Domain) => verified && ssl !== 'PENDING' && ssl !== 'ISSUING'

function stateOf({ verified, ssl, verification: { reason, observed }, certificate }: Domain): string {
  if (!verified) {
    const seen = observed.nameservers.length > 0 ? ` Seen: ${observed.nameservers.map(clean).join(' ')}.` : ''
    return `not verified yet${reason ? `: ${clean(reason)}` : ''}.${seen}`
  }
  if (ssl === 'ACTIVE') return 'verified, and the certificate is active'
  return `verified; certificate: ${clean(ssl)}${certificate?.lastError ? ` (${clean(certificate.lastError)})` : ''}`
}

function reportResult({ ssl, verified }: Domain, out: Output): number {
  const isGood = verified && ssl === 'ACTIVE'
  out.say(isGood ? out.paint('green', 'Done.') : out.paint('red', 'The domain has no active certificate.'))
  return isGood ? exitCodes.ok : exitCodes.failed
}

function card(it: Domain): string {
  const rows: [string, unknown][] = [
    ['name', it.name],
    ['project', it.project],
    ['verified', it.verified ? `yes, by ${it.verification.method}` : 'no'],
    ['ssl', it.ssl],
    ['nameservers', it.nameservers.join(' ')],
  ]
  return rows.map(([name, value]) => `${name.padEnd(11)} ${clean(value)}`).join('\n')
}

export const remove: Action = async ({ berth, out, options, signal }, [name]) => {
  await confirm(`Detach ${name} and delete its zone?`, options.yes, signal)
  await (await berth()).delete('/domains/{name}', { params: { path: { name: name! } } })
  out.say(`Detached ${name}.`)
}
