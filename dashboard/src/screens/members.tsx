// The people of the account: who they are, what each may do, and who is invited.
import { useState } from 'preact/hooks'
import {
  access,
  type Call,
  ConfirmButton,
  CopyLine,
  Countdown,
  call,
  Dialog,
  Empty,
  Field,
  Form,
  ListTable,
  Loaded,
  may,
  me,
  Panel,
  type Role,
  readMe,
  type Schemas,
  Select,
  Time,
  Top,
  toast,
  useDialog,
  useList,
  useQuery,
  type Values,
} from '../kit/index.ts'
import { ScopeTable } from './parts/scopes.tsx'
import { ProjectChecks, projectsFrom } from './parts/token-forms.tsx'
import { useNames, Who } from './parts/who.tsx'

type Member = Schemas['Member']
type RoleRow = Schemas['MemberRole']

const page = { params: { query: { limit: 100 } } }

export default function Members() {
  const members = useList(call('get', '/members', page), { on: ['member.*'] })
  const invitations = useList(call('get', '/members/invitations', page), { on: ['member.*'] })
  const roles = useQuery(call('get', '/roles'))
  const names = useNames()
  const inviting = useDialog()
  const canWrite = may('members:write')
  const reread = () => {
    members.refetch()
    invitations.refetch()
  }
  const button = canWrite && (
    <button type="button" class="primary" onClick={inviting.open}>
      Invite a person
    </button>
  )
  return (
    <>
      <Top title="Members">{button}</Top>
      <Panel title="People" call={members.call}>
        <ListTable
          label="People"
          of={members}
          keyOf={(it: Member) => it.id}
          columns={[
            {
              name: 'Person',
              cell: ({ name, email, userId }) => (
                <>
                  <b>{name}</b>
                  {userId === me.value?.user.id && <span class="soft"> (you)</span>}
                  <div class="soft">{email}</div>
                </>
              ),
            },
            { name: 'Role', cell: ({ role }) => <span class="whole">{role}</span> },
            {
              name: 'Projects',
              wide: true,
              cell: ({ projects }) => projects?.join(', ') ?? <span class="soft">all</span>,
            },
            { name: 'Since', wide: true, cell: ({ createdAt }) => <Time at={createdAt} form="date" /> },
            {
              name: 'Actions',
              actions: true,
              cell: (it) => <Actions of={it} roles={roles.data?.roles} done={reread} />,
            },
          ]}
        />
      </Panel>
      <Panel title="Invited" note="a link works once, for seven days" call={invitations.call}>
        <ListTable
          label="Invitations"
          of={invitations}
          keyOf={(it: Schemas['Invitation']) => it.id}
          columns={[
            { name: 'Address', cell: ({ email }) => email },
            { name: 'Role', cell: ({ role }) => <span class="whole">{role}</span> },
            {
              name: 'Projects',
              wide: true,
              cell: ({ projects }) => projects?.join(', ') ?? <span class="soft">all</span>,
            },
            { name: 'By', wide: true, cell: ({ invitedBy }) => <Who id={invitedBy} names={names} /> },
            { name: 'Ends in', cell: ({ expiresAt }) => <Countdown to={expiresAt} /> },
            { name: 'Actions', actions: true, cell: (it) => canWrite && <TakeBack of={it} done={reread} /> },
          ]}
          empty={
            <Empty title="Nobody is invited">
              <p>Invite those who work with you.</p>
            </Empty>
          }
        />
      </Panel>
      <Panel title="What each role may do" call={roles.call}>
        <Loaded of={roles}>
          {(it) => (
            <>
              <ScopeTable label="Roles and their scopes" of={it.roles} />
              <ul class="body stack soft">
                {it.roles.map(({ name, description, byProject }) => (
                  <li key={name}>
                    <b>{name}</b> {description}.{byProject && ' May be narrowed to projects.'}
                  </li>
                ))}
              </ul>
            </>
          )}
        </Loaded>
      </Panel>
      <Dialog of={inviting} title="Invite a person">
        <Invite roles={roles.data?.roles ?? []} close={inviting.close} done={reread} />
      </Dialog>
    </>
  )
}

/** Only owners make and touch owners. */
const offered = (roles: readonly RoleRow[]) =>
  roles.filter(({ name }) => name !== 'owner' || access.value?.role === 'owner')

type RoleFieldsProps = { roles: readonly RoleRow[]; now: Role; projects?: readonly string[] | null }

function RoleFields({ roles, now, projects }: RoleFieldsProps) {
  const [chosen, choose] = useState<string>(now)
  const row = roles.find(({ name }) => name === chosen)
  const options = offered(roles).map(({ name, description }) => ({ value: name, text: `${name}: ${description}` }))
  return (
    <>
      <Select name="role" label="Role" value={now} options={options} onInput={choose} />
      {row?.byProject && <ProjectChecks within={null} chosen={projects ?? []} />}
    </>
  )
}

function roleFrom(values: Values) {
  const projects = projectsFrom(values)
  return { role: values.role as Role, ...(projects.length > 0 && { projects }) }
}

function Invite({ roles, close, done }: { roles: readonly RoleRow[]; close(): void; done(): void }) {
  const [made, keep] = useState<Schemas['InvitationWithSecret'] | null>(null)
  if (made) {
    return (
      <>
        <div class="body stack">
          <p>
            Give this link to <b>{made.email}</b>. It works once, until <Time at={made.expiresAt} form="full" />, and is
            not shown again. Where mail is set up, it was also sent.
          </p>
          <div class="secret">
            <CopyLine text={made.url} what="link" />
          </div>
        </div>
        <footer>
          <button type="button" class="primary right" onClick={close}>
            Done
          </button>
        </footer>
      </>
    )
  }
  return (
    <Form
      call={(values) =>
        call('post', '/members/invitations', { body: { email: values.email ?? '', ...roleFrom(values) } })
      }
      submit="Make the invitation"
      cancel={close}
      done={(invitation) => {
        keep(invitation)
        done()
      }}
    >
      <Field name="email" label="Address" type="email" placeholder="grace@example.com" autocomplete="off" autoFocus />
      <RoleFields roles={roles} now="developer" />
    </Form>
  )
}

type ActionsProps = { of: Member; roles: readonly RoleRow[] | undefined; done(): void }

function Actions({ of, roles = [], done }: ActionsProps) {
  const changing = useDialog()
  const isSelf = of.userId === me.value?.user.id
  const params = { path: { id: of.id } }
  if (!may('members:write') || (of.role === 'owner' && access.value?.role !== 'owner')) return null
  return (
    <>
      <button type="button" class="quiet" aria-label={`Change the role of ${of.name}`} onClick={changing.open}>
        Change
      </button>
      <ConfirmButton
        text={isSelf ? 'Leave' : 'Remove'}
        label={isSelf ? 'Leave the account' : `Remove ${of.name}`}
        title={isSelf ? 'Leave the account?' : `Remove ${of.name}?`}
        action={isSelf ? 'Leave the account' : 'Remove the person'}
        call={call('delete', '/members/{id}', { params }) as Call<unknown>}
        done={() => {
          if (isSelf) return void readMe().finally(() => location.assign('/'))
          toast(`${of.name} is no longer a member.`)
          done()
        }}
      >
        <Lost of={of} />
      </ConfirmButton>
      <Dialog of={changing} title={`Role of ${of.name}`}>
        <Form
          call={(values) => {
            const body = { projects: null, ...roleFrom(values) }
            return call('patch', '/members/{id}', { params, body })
          }}
          submit="Change the role"
          cancel={changing.close}
          done={() => {
            changing.close()
            done()
          }}
        >
          <RoleFields roles={roles} now={of.role} projects={of.projects} />
          <p class="soft">With a smaller role, the tokens that {of.name} made lose the same at once.</p>
        </Form>
      </Dialog>
    </>
  )
}

/** What ends with a member. */
function Lost({ of }: { of: Member }) {
  const tokens = useList(may('tokens:read') ? call('get', '/tokens', page) : null)
  const theirs = (tokens.items ?? []).filter(({ createdBy }) => createdBy === of.userId)
  return (
    <>
      <p>
        <b>{of.email}</b> can no longer sign in to this account. What they made stays.
      </p>
      <p>
        {theirs.length === 0
          ? 'They made no token.'
          : `Revoked with them: ${theirs.map(({ name }) => name).join(', ')}.`}
      </p>
      <p class="soft">They can be invited again.</p>
    </>
  )
}

function TakeBack({ of, done }: { of: Schemas['Invitation']; done(): void }) {
  return (
    <ConfirmButton
      text="Take back"
      label={`Take back the invitation of ${of.email}`}
      title={`Take back the invitation of ${of.email}?`}
      action="Take it back"
      call={call('delete', '/members/invitations/{id}', { params: { path: { id: of.id } } }) as Call<unknown>}
      done={done}
    >
      <p>The link stops working.</p>
    </ConfirmButton>
  )
}
