// `berth dns`: records and zone files.
import { readFile } from 'node:fs/promises'
import type { Schemas } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import { collect } from '../kit/collect.ts'
import { exitCodes, usage } from '../kit/failures.ts'
import { confirm, readStdin } from '../kit/prompt.ts'
import { fromServer } from '../kit/shape.ts'
import { clean, cleanLines } from '../kit/text.ts'

type DnsRecord = Schemas['DnsRecord']
type Shown = Pick<DnsRecord, 'name' | 'type' | 'ttl' | 'value'>

const heads = ['NAME', 'TYPE', 'TTL', 'VALUE']
const cells = (it: Shown) => [it.name, it.type, it.ttl, it.value]

export const list: Action<{ type?: string; name?: string }> = async ({ berth, out }, [domain], { type, name }) => {
  const query = { ...(type && { type: type.toUpperCase() }), ...(name && { name }) }
  const found = await collect(
    (await berth()).list('/dns/{domain}/records', { params: { path: { domain: domain! }, query } } as never),
  )
  out.list(found, ['ID', ...heads], (it: DnsRecord) => [it.id, ...cells(it)])
}

export const set: Action<{ ttl?: string }> = async ({ berth, out }, [domain, name, type, ...values], { ttl }) => {
  if (ttl !== undefined && !/^\d{1,6}$/.test(ttl)) throw usage('--ttl must be a number of seconds.')
  const path = { domain: domain!, name: name!, type: type!.toUpperCase() }
  const body = { values, ...(ttl && { ttl: Number(ttl) }) }
  const rrset = await (await berth()).put('/dns/{domain}/rrsets/{name}/{type}', { params: { path }, body })
  out.show(rrset, () =>
    rrset.values
      .map((value) =>
        cells({ ...rrset, value })
          .map(clean)
          .join('  '),
      )
      .join('\n'),
  )
}

export const remove: Action = async ({ berth, out, options, signal }, [domain, name, type]) => {
  const client = await berth()
  const isId = name!.startsWith('rec_')
  if (type === undefined && !isId) throw usage('Add the type, such as `berth dns rm example.com www A`.')
  if (type !== undefined && isId) throw usage('A record ID takes no type.')
  const path = { domain: domain!, name: name!, type: type?.toUpperCase() ?? '' }
  // The API accepts deleting a set that doesn't exist, but a typed name that doesn't exist is probably a typo.
  if (!isId) await client.get('/dns/{domain}/rrsets/{name}/{type}', { params: { path } })
  await confirm(`Delete ${type ? `${type} of ` : ''}${name} in ${domain}?`, options.yes, signal)
  if (isId) await client.delete('/dns/{domain}/records/{id}', { params: { path: { domain: domain!, id: name! } } })
  else await client.delete('/dns/{domain}/rrsets/{name}/{type}', { params: { path } })
  out.say('Deleted.')
}

type Import = { dryRun?: boolean; skipUnsupported?: boolean }

export const importZone: Action<Import> = async (context, [domain, file], flags) => {
  const { berth, out, options, signal } = context
  const body =
    file === '-'
      ? await readStdin()
      : await readFile(file!, 'utf8').catch((error: Error) => {
          throw usage(`We couldn't read ${file}: ${error.message}`)
        })
  const { dryRun = false, skipUnsupported = false } = flags
  const client = await berth()
  // Replaces only the version the person was shown; with --yes, any version.
  let ifMatch = '*'
  const send = (isDryRun: boolean) =>
    client.put('/dns/{domain}/zone', {
      params: { path: { domain: domain! }, query: { dryRun: isDryRun, skipUnsupported } },
      headers: { 'if-match': ifMatch },
      body,
    } as never)
  if (!dryRun && !options.yes) {
    const current = await context.send('GET', `/api/dns/${encodeURIComponent(domain!)}/zone`)
    ifMatch = current.headers.get('etag') ?? '*'
    const { created, updated, deleted } = await send(true)
    await confirm(
      `Create ${created}, change ${updated} and delete ${deleted} records of ${domain}?`,
      options.yes,
      signal,
    )
  }
  const result = await send(dryRun)
  fromServer(() => {
    for (const it of result.skipped) out.say(`Line ${clean(it.line)} was skipped: ${clean(it.detail)}`)
    for (const it of result.notes) out.say(`Line ${clean(it.line)}: ${clean(it.detail)}`)
    for (const it of result.hidden)
      out.say(`${clean(it.name)} ${clean(it.type)} is hidden by the NS records of ${clean(it.delegation)}`)
  })
  const withSign = (sign: string, it: Shown) => `${sign} ${cells(it).map(clean).join('  ')}`
  out.show(result, () =>
    [
      ...result.changes.deleted.map((it) => withSign('-', it)),
      ...result.changes.updated.flatMap((it) => [withSign('-', it.before), withSign('+', it.after)]),
      ...result.changes.created.map((it) => withSign('+', it)),
    ].join('\n'),
  )
  const { created, updated, deleted, unchanged } = result
  out.say(
    dryRun
      ? `This would create ${created}, change ${updated} and delete ${deleted} records, and leave ${unchanged} unchanged.`
      : `Created ${created}, changed ${updated} and deleted ${deleted} records, and left ${unchanged} unchanged.`,
  )
  return exitCodes.ok
}

export const exportZone: Action = async ({ berth, out }, [domain]) => {
  const zone = (await (
    await berth()
  ).get('/dns/{domain}/zone', { params: { path: { domain: domain! } } })) as unknown as string
  // A zone file has tabs, but no other control characters.
  out.show({ domain, zone }, () => cleanLines(zone))
}

const states = ['on', 'off']

/** Turns signing on or off if a state is given, then shows how the zone is withSign. */
export const dnssec: Action = async ({ berth, out, options, signal }, [domain, state]) => {
  if (state !== undefined && !states.includes(state)) throw usage(`The state must be on or off, not ${state}.`)
  const client = await berth()
  const params = { path: { domain: domain! } }
  if (state === 'off') await confirm(`Stop signing ${domain}?`, options.yes, signal)
  const zone = state
    ? await client.put('/dns/{domain}/dnssec', { params, body: { enabled: state === 'on' } })
    : await client.get('/dns/{domain}/dnssec', { params })
  if (zone.reason) out.say(clean(zone.reason))
  out.show(zone, () =>
    [
      `signing     ${zone.enabled ? 'on' : 'off'} (${clean(zone.state)})`,
      ...zone.ds.map(({ text }) => `DS record   ${clean(text)}`),
    ].join('\n'),
  )
}
