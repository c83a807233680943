// Forms of tokens: a new one, a narrower one, and a new secret.
import { access, Check, call, Field, Form, may, type Schemas, Select, useList, type Values } from '../../kit/index.ts'
import { describeScopes, heldScopes, ScopeFields, scopesFrom } from './scopes.tsx'

type Token = Schemas['Token']

/** What it may do, in a line. */
export function Access({ of: { scopes, projects } }: { of: Pick<Token, 'scopes' | 'projects'> }) {
  return (
    <>
      <span class="whole">{describeScopes(scopes)}</span>
      {projects && <div class="soft">only {projects.join(', ')}</div>}
    </>
  )
}

type FormProps<T> = { cancel(): void; done(made: T): void }

const dayMs = 86_400_000
const ends = [
  { value: '7', text: 'in 7 days' },
  { value: '30', text: 'in 30 days' },
  { value: '90', text: 'in 90 days' },
  { value: '365', text: 'in a year' },
]

/** The day's start, so that the curl stays the same while one looks at it. */
const endOf = (days: string) => new Date(Math.floor(Date.now() / dayMs) * dayMs + Number(days) * dayMs).toISOString()

export function NewToken({ cancel, done }: FormProps<Schemas['TokenWithSecret']>) {
  return (
    <Form
      call={(values) => call('post', '/tokens', { body: tokenFrom(values) })}
      submit="Make the token"
      cancel={cancel}
      done={done}
    >
      <Field name="name" label="Name" placeholder="ci" hint="Where it is used, so that you find it again." autoFocus />
      <ScopeFields within={heldScopes()} />
      <ProjectChecks within={access.value?.projects ?? null} />
      <Select
        name="expiresAt"
        label="Ends"
        value="90"
        options={[...ends, { value: '', text: 'never' }]}
        hint="It also ends when you leave the account, or when your role no longer allows it."
      />
    </Form>
  )
}

function tokenFrom(values: Values): Schemas['CreateToken'] {
  const projects = projectsFrom(values)
  return {
    name: values.name ?? '',
    scopes: scopesFrom(values),
    ...(projects.length > 0 && { projects }),
    ...(values.expiresAt && { expiresAt: endOf(values.expiresAt) }),
  }
}

export const projectsFrom = (values: Values) =>
  Object.keys(values)
    .filter((name) => name.startsWith('project/'))
    .map((name) => name.slice('project/'.length))

type ProjectProps = {
  /** Null: all of the account. */
  within: readonly string[] | null
  chosen?: readonly string[]
  none?: string
}

/** Projects to choose from; none chosen is all. */
export function ProjectChecks({
  within,
  chosen = [],
  none = 'None chosen: all of them, also later ones.',
}: ProjectProps) {
  const all = within === null && may('projects:read')
  const list = useList(all ? call('get', '/projects', { params: { query: { limit: 100 } } }) : null)
  const names = within ?? list.items?.map(({ name }) => name) ?? []
  if (names.length === 0) return null
  return (
    <fieldset class="checks">
      <legend>Only these projects</legend>
      <div class="row wrap">
        {names.map((name) => (
          <Check key={name} name={`project/${name}`} label={name} checked={chosen.includes(name)} />
        ))}
      </div>
      <p class="soft">{none}</p>
    </fieldset>
  )
}

export function NarrowToken({ token, cancel, done }: FormProps<Token> & { token: Token }) {
  const { id, scopes, projects, expiresAt } = token
  const offered = ends.filter(({ value }) => !expiresAt || endOf(value) < expiresAt)
  return (
    <Form
      call={(values) => {
        const chosen = { scopes: scopesFrom(values), projects: projectsFrom(values), end: values.expiresAt }
        const kept = token.scopes.filter((scope) => scope === 'operator')
        const body = {
          scopes: [...chosen.scopes, ...kept],
          ...(chosen.projects.length > 0 && { projects: chosen.projects }),
          ...(chosen.end && { expiresAt: endOf(chosen.end) }),
        }
        return call('patch', '/tokens/{id}', { params: { path: { id } }, body })
      }}
      submit="Narrow the token"
      danger
      cancel={cancel}
      done={done}
    >
      <p>A token can only lose access. The tokens that it made lose the same.</p>
      <ScopeFields within={scopes} chosen={scopes} />
      <ProjectChecks within={projects} chosen={projects ?? []} none="None chosen: as it is now." />
      <Select name="expiresAt" label="Ends" value="" options={[{ value: '', text: 'as it does now' }, ...offered]} />
    </Form>
  )
}

const overlaps = [
  { value: '0', text: 'at once' },
  { value: '3600', text: 'in an hour' },
  { value: '86400', text: 'in a day' },
  { value: '604800', text: 'in a week' },
]

type RotateProps = FormProps<Schemas['TokenWithSecret']> & { token: Token; line: readonly Token[] }

export function RotateToken({ token, line, cancel, done }: RotateProps) {
  return (
    <Form
      call={({ overlapSeconds, revokeChildren }) =>
        call('post', '/tokens/{id}/rotate', {
          params: { path: { id: token.id } },
          body: { overlapSeconds: Number(overlapSeconds), ...(revokeChildren && { revokeChildren: true }) },
        })
      }
      submit="Give it a new secret"
      cancel={cancel}
      done={done}
    >
      <p>The new token has the same name, access and end. The old secret stops:</p>
      <Select
        name="overlapSeconds"
        label="The old secret ends"
        value="3600"
        options={overlaps}
        hint="Time to put the new one everywhere. After a leak: at once."
      />
      {line.length > 0 && (
        <Check
          name="revokeChildren"
          label={`Also revoke ${line.map(({ name }) => name).join(', ')}`}
          hint="As after a leak; otherwise they go on under the new one."
        />
      )}
    </Form>
  )
}
