// A zone: its records, the state of its nameservers, and zone file import and export.
import {
  Act,
  call,
  Loaded,
  may,
  Panel,
  type Params,
  State,
  Table,
  Top,
  useParam,
  useQuery,
  useTitle,
} from '../kit/index.ts'
import { domainPath } from './domain-data.ts'
import { save } from './save.ts'
import { DnsTrafficPanel } from './traffic.tsx'
import { Paste } from './zone-paste.tsx'
import { Records } from './zone-records.tsx'

export default function ZoneScreen({ params }: { params: Params }) {
  const domain = params.domain!
  const [paste, setPaste] = useParam('paste')
  useTitle(`DNS of ${domain}`)
  const file = call('get', '/dns/{domain}/zone', { params: { path: { domain } } })
  return (
    <>
      <Top title={domain} trail={<a href="/dns">DNS</a>}>
        <a class="button" href={domainPath(domain)}>
          Domain
        </a>
        <Act call={file} text="Download" done={(text) => save(`${domain}.zone`, text)} />
        {may('dns:write') && (
          <button type="button" aria-expanded={paste !== ''} onClick={() => setPaste(paste ? '' : '1')}>
            Paste a zone
          </button>
        )}
      </Top>
      {paste && may('dns:write') && <Paste domain={domain} close={() => setPaste('')} />}
      <Records domain={domain} />
      <Nameservers domain={domain} />
      <DnsTrafficPanel domain={domain} />
    </>
  )
}

const errors: Record<string, string> = {
  timeout: 'timed out',
  refused: 'refused the query',
  unreachable: 'unreachable',
  not_served: "doesn't serve the zone",
  invalid_answer: 'sent a malformed answer',
}

/** The serial of each nameserver, queried when this is shown and after each change. */
function Nameservers({ domain }: { domain: string }) {
  const status = useQuery(call('get', '/dns/{domain}/zone/status', { params: { path: { domain } } }), {
    on: ['dns.*', 'domain.*'],
    when: ({ subject, data }) => subject === domain || data.domain === domain,
  })
  return (
    <Panel
      title="Nameservers"
      note={status.data && `expected serial: ${status.data.serial}`}
      actions={
        <button type="button" class="quiet" disabled={status.loading} onClick={status.refetch}>
          Refresh
        </button>
      }
      call={status.call}
    >
      <Loaded of={status}>
        {({ nameservers, serial }) => (
          <Table
            label="What each nameserver serves"
            rows={nameservers}
            keyOf={({ name, address }) => `${name} ${address}`}
            columns={[
              { name: 'Nameserver', cell: (it) => <code>{it.name}</code> },
              { name: 'IP address', wide: true, cell: (it) => <code>{it.address}</code> },
              { name: 'Serial', num: true, cell: (it) => it.serial ?? '–' },
              {
                name: 'State',
                cell: (it) =>
                  it.current ? (
                    <State is="ready">Up to date</State>
                  ) : it.error ? (
                    <State is="bad">{errors[it.error] ?? it.error}</State>
                  ) : (
                    <State is="busy">{serial - (it.serial ?? 0)} behind</State>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
    </Panel>
  )
}
