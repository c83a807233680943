// Forms that create, narrow and rotate tokens.
import { access, Check, call, Field, Form, may, type Schemas, Select, useList, type Values } from '../../kit/index.ts'
import { describeScopes, ownScopes, ScopeFields, scopesFrom } from './scopes.tsx'

type Token = Schemas['Token']

/** A token's access in one line. */
export function Access({ of: { scopes, projects } }: { of: Pick<Token, 'scopes' | 'projects'> }) {
  return (
    <>
      <span class="whole">{describeScopes(scopes)}</span>
      {projects && <div class="soft">only {projects.join(', ')}</div>}
    </>
  )
}

type FormProps<T> = { cancel(): void; done(created: T): void }

const dayMs = 86_400_000
const expiries = [
  { value: '7', text: 'in 7 days' },
  { value: '30', text: 'in 30 days' },
  { value: '90', text: 'in 90 days' },
  { value: '365', text: 'in a year' },
]

/** Counted from the start of the day, so that the curl doesn't change while you read it. */
const expiryOf = (days: string) => new Date(Math.floor(Date.now() / dayMs) * dayMs + Number(days) * dayMs).toISOString()

export function NewToken({ cancel, done }: FormProps<Schemas['TokenWithSecret']>) {
  return (
    <Form
      call={(values) => call('post', '/tokens', { body: tokenFrom(values) })}
      submit="Create the token"
      cancel={cancel}
      done={done}
    >
      <Field name="name" label="Name" placeholder="ci" hint="Where the token is used." autoFocus />
      <ScopeFields within={ownScopes()} />
      <ProjectChecks within={access.value?.projects ?? null} />
      <Select
        name="expiresAt"
        label="Expires"
        value="90"
        options={[...expiries, { value: '', text: 'never' }]}
        hint="It also stops working when you leave the account or your role no longer allows it."
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
    ...(values.expiresAt && { expiresAt: expiryOf(values.expiresAt) }),
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

/** Projects to choose from; choosing none means all. */
export function ProjectChecks({
  within,
  chosen = [],
  none = 'None selected: all projects, including future ones.',
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
  const shorter = expiries.filter(({ value }) => !expiresAt || expiryOf(value) < expiresAt)
  return (
    <Form
      call={(values) => {
        const chosen = { scopes: scopesFrom(values), projects: projectsFrom(values), end: values.expiresAt }
        const operator = token.scopes.filter((scope) => scope === 'operator')
        const body = {
          scopes: [...chosen.scopes, ...operator],
          ...(chosen.projects.length > 0 && { projects: chosen.projects }),
          ...(chosen.end && { expiresAt: expiryOf(chosen.end) }),
        }
        return call('patch', '/tokens/{id}', { params: { path: { id } }, body })
      }}
      submit="Narrow the token"
      danger
      cancel={cancel}
      done={done}
    >
      <p>You can only reduce a token's access. Tokens it created lose the same access.</p>
      <ScopeFields within={scopes} chosen={scopes} />
      <ProjectChecks within={projects} chosen={projects ?? []} none="None selected: no change." />
      <Select name="expiresAt" label="Expires" value="" options={[{ value: '', text: 'no change' }, ...shorter]} />
    </Form>
  )
}

export const overlaps = [
  { value: '0', text: 'at once' },
  { value: '3600', text: 'in an hour' },
  { value: '86400', text: 'in a day' },
  { value: '604800', text: 'in a week' },
]

type RotateProps = FormProps<Schemas['TokenWithSecret']> & { token: Token; dependents: readonly Token[] }

export function RotateToken({ token, dependents, cancel, done }: RotateProps) {
  return (
    <Form
      call={({ overlapSeconds, revokeChildren }) =>
        call('post', '/tokens/{id}/rotate', {
          params: { path: { id: token.id } },
          body: { overlapSeconds: Number(overlapSeconds), ...(revokeChildren && { revokeChildren: true }) },
        })
      }
      submit="Rotate the token"
      cancel={cancel}
      done={done}
    >
      <p>The new token has the same name, access and expiry.</p>
      <Select
        name="overlapSeconds"
        label="Old secret expires"
        value="3600"
        options={overlaps}
        hint="Leave time to replace it everywhere. After a leak, choose at once."
      />
      {dependents.length > 0 && (
        <Check
          name="revokeChildren"
          label={`Also revoke ${dependents.map(({ name }) => name).join(', ')}`}
          hint="Do this after a leak. Otherwise they keep working."
        />
      )}
    </Form>
  )
}
