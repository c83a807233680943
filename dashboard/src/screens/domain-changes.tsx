// Dialogs that move a domain to another project or redirect it to another domain.
import { call, Dialog, type DialogState, Form, Select, toast, useQuery } from '../kit/index.ts'
import type { Domain } from './domain-data.ts'
import { useTargets } from './domain-targets.ts'

type Props = { of: DialogState; domain: Domain }

export function Move({ of, domain }: Props) {
  return (
    <Dialog of={of} title={`Move ${domain.name}`}>
      <MoveForm of={of} domain={domain} />
    </Dialog>
  )
}

function MoveForm({ of, domain }: Props) {
  const projects = useQuery(call('get', '/projects', { params: { query: { limit: 100 } } }))
  const others = (projects.data?.projects ?? []).map(({ name }) => name).filter((name) => name !== domain.project)
  return (
    <Form
      call={({ project = '' }) =>
        call('patch', '/domains/{name}', { params: { path: { name: domain.name } }, body: { project } })
      }
      submit="Move the domain"
      cancel={of.close}
      done={({ project }) => {
        of.close()
        toast(`${domain.name} now shows ${project}.`)
      }}
    >
      <p>Visitors see the other project at once. The zone, certificate and verification stay the same.</p>
      <Select
        name="project"
        label="Project"
        options={others}
        hint={projects.data && others.length === 0 ? 'There is no other project.' : undefined}
      />
    </Form>
  )
}

export function Redirect({ of, domain }: Props) {
  return (
    <Dialog of={of} title={`Redirect ${domain.name}`}>
      <RedirectForm of={of} domain={domain} />
    </Dialog>
  )
}

function RedirectForm({ of, domain }: Props) {
  const targets = useTargets(domain.name)
  return (
    <Form
      call={({ redirectTo, redirectStatus }) =>
        call('patch', '/domains/{name}', {
          params: { path: { name: domain.name } },
          body: redirectTo ? { redirectTo, redirectStatus: Number(redirectStatus) as 301 | 308 } : { redirectTo: null },
        })
      }
      submit="Save"
      cancel={of.close}
      done={({ redirectTo }) => {
        of.close()
        toast(redirectTo ? `Redirects to ${redirectTo}.` : 'Redirect removed.')
      }}
    >
      <Select
        key={targets.length}
        name="redirectTo"
        label="Redirect to"
        value={domain.redirectTo ?? ''}
        options={[{ value: '', text: 'No redirect' }, ...targets.map(({ name }) => ({ value: name, text: name }))]}
        hint="Another domain of the account that doesn't redirect. Path and query are kept."
      />
      <Select
        name="redirectStatus"
        label="Status"
        value={String(domain.redirectStatus ?? 308)}
        options={[
          { value: '308', text: '308: keeps the request method' },
          { value: '301', text: '301: browsers send a GET' },
        ]}
        hint="Browsers cache both for a long time."
      />
    </Form>
  )
}
