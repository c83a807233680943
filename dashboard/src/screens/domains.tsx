// The domains of the account, and the dialog that adds one.
import { useEffect } from 'preact/hooks'
import {
  Countdown,
  call,
  Dialog,
  type DialogState,
  domainState,
  Empty,
  Field,
  Form,
  go,
  ListPage,
  type Schemas,
  Select,
  State,
  Time,
  useDialog,
  useList,
  useParam,
  useQuery,
} from '../kit/index.ts'
import { domainPath } from './domain-data.ts'
import { useTargets } from './domain-targets.ts'
import { Filter, Filters, FindBox } from './parts/filters.tsx'

type Domain = Schemas['Domain']
const sslStates = ['PENDING', 'ISSUING', 'ACTIVE', 'ERROR', 'EXPIRED'] as const

export default function Domains() {
  const [search] = useParam('search')
  const [project] = useParam('project')
  const [verified] = useParam('verified')
  const [ssl] = useParam('ssl')
  const [add, setAdd] = useParam('add')
  const adding = useDialog()
  useEffect(() => {
    if (add) adding.open()
  }, [add])
  const close = () => {
    adding.close()
    setAdd('')
  }
  const query = {
    limit: 50,
    ...(search && { search }),
    ...(project && { project: [project] }),
    ...(verified && { verified: verified === 'yes' }),
    ...(ssl && { ssl: sslStates.filter((state) => state === ssl) }),
  }
  const list = useList(call('get', '/domains', { params: { query } }), { on: ['domain.*'] })
  return (
    <>
      <ListPage
        title="Domains"
        panel="All domains"
        note="updated live"
        create={{ text: 'Add a domain', scope: 'domains:write', open: adding.open }}
        isFiltered={Object.keys(query).length > 1}
        filters={
          <Filters>
            <FindBox name="search" label="Part of the name" />
            <FindBox name="project" label="Project" />
            <Filter
              name="verified"
              label="Verified"
              options={{ '': 'Verified or not', yes: 'Verified', no: 'Not verified' }}
            />
            <Filter
              name="ssl"
              label="Certificate"
              options={{
                '': 'Any certificate',
                ...Object.fromEntries(sslStates.map((state) => [state, state[0] + state.slice(1).toLowerCase()])),
              }}
            />
          </Filters>
        }
        of={list}
        keyOf={(it: Domain) => it.name}
        columns={[
          {
            name: 'Domain',
            cell: (it) => (
              <>
                <a href={domainPath(it.name)}>
                  <b>{it.name}</b>
                </a>
                {it.redirectTo && <div class="soft">redirects to {it.redirectTo}</div>}
              </>
            ),
          },
          { name: 'State', cell: (it) => <DomainCell of={it} /> },
          { name: 'Project', wide: true, cell: (it) => <a href={`/projects/${it.project}`}>{it.project}</a> },
          {
            name: 'Certificate expires',
            wide: true,
            num: true,
            cell: (it) => (it.certificate?.notAfter ? <Time at={it.certificate.notAfter} form="date" /> : '–'),
          },
          { name: 'Added', wide: true, num: true, cell: (it) => <Time at={it.createdAt} /> },
        ]}
        empty={{
          title: 'No domains yet',
          text: "Add a name you own. We'll show you what to set at your registrar.",
        }}
      />
      <AddDomain of={{ ...adding, close }} project={add} />
    </>
  )
}

function DomainCell({ of }: { of: Domain }) {
  const [tone, word] = domainState(of)
  return (
    <>
      <State is={of.takedown ? 'bad' : tone}>{of.takedown ? 'Taken down' : word}</State>
      {!of.verified && of.verification.nextCheckAt && (
        <div class="soft">
          next check in <Countdown to={of.verification.nextCheckAt} />
        </div>
      )}
      {of.certificate?.lastError && of.ssl !== 'ACTIVE' && <div class="soft">{of.certificate.lastError}</div>}
    </>
  )
}

function AddDomain({ of, project }: { of: DialogState; project: string }) {
  return (
    <Dialog of={of} title="Add a domain">
      <AddForm close={of.close} project={project} />
    </Dialog>
  )
}

function AddForm({ close, project }: { close(): void; project: string }) {
  const projects = useQuery(call('get', '/projects', { params: { query: { limit: 100 } } }))
  const targets = useTargets('')
  if (projects.data?.projects.length === 0) {
    return (
      <Empty title="A domain belongs to a project">
        <p>
          <a href="/">Create a project</a> first. The domain then shows what it has in production.
        </p>
      </Empty>
    )
  }
  return (
    <Form
      call={({ name = '', project: chosen = '', redirectTo }) =>
        call('post', '/domains', { body: { project: chosen, name: name.trim(), ...(redirectTo && { redirectTo }) } })
      }
      submit="Add the domain"
      cancel={close}
      done={({ name }) => go(domainPath(name))}
    >
      <Field
        name="name"
        label="Name"
        placeholder="example.com"
        hint="Or *.example.com, once example.com is added."
        autocomplete="off"
        mono
        required
        autoFocus
      />
      <Select
        name="project"
        label="Project"
        value={project}
        options={(projects.data?.projects ?? []).map((it) => it.name)}
      />
      {targets.length > 0 && (
        <Select
          name="redirectTo"
          label="Redirect to"
          options={[{ value: '', text: 'No redirect' }, ...targets.map(({ name }) => ({ value: name, text: name }))]}
          hint="For example, www.example.com to example.com. Path and query are kept."
        />
      )}
    </Form>
  )
}
