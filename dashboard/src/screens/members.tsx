// The people of the account: their roles, and who is invited.
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
            { name: 'Joined', wide: true, cell: ({ createdAt }) => <Time at={createdAt} form="date" /> },
            {
              name: 'Actions',
              actions: true,
              cell: (it) => <Actions of={it} roles={roles.data?.roles} done={reread} />,
            },
          ]}
        />
      </Panel>
      <Panel title="Invitations" note="a link works once, within seven days" call={invitations.call}>
        <ListTable
          label="Invitations"
          of={invitations}
          keyOf={(it: Schemas['Invitation']) => it.id}
          columns={[
            { name: 'Email', cell: ({ email }) => email },
            { name: 'Role', cell: ({ role }) => <span class="whole">{role}</span> },
            {
              name: 'Projects',
              wide: true,
              cell: ({ projects }) => projects?.join(', ') ?? <span class="soft">all</span>,
            },
            { name: 'Invited by', wide: true, cell: ({ invitedBy }) => <Who id={invitedBy} names={names} /> },
            { name: 'Expires in', cell: ({ expiresAt }) => <Countdown to={expiresAt} /> },
            { name: 'Actions', actions: true, cell: (it) => canWrite && <RevokeInvitation of={it} done={reread} /> },
          ]}
          empty={
            <Empty title="No invitations">
              <p>Invite the people you work with.</p>
            </Empty>
          }
        />
      </Panel>
      <Panel title="What each role can do" call={roles.call}>
        <Loaded of={roles}>
          {(it) => (
            <>
              <ScopeTable label="Roles and their scopes" of={it.roles} />
              <ul class="body stack soft">
                {it.roles.map(({ name, description, byProject }) => (
                  <li key={name}>
                    <b>{name}</b> {description}.{byProject && ' Can be limited to projects.'}
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

/** Only owners can add or change owners. */
const rolesToOffer = (roles: readonly RoleRow[]) =>
  roles.filter(({ name }) => name !== 'owner' || access.value?.role === 'owner')

type RoleFieldsProps = { roles: readonly RoleRow[]; now: Role; projects?: readonly string[] | null }

function RoleFields({ roles, now, projects }: RoleFieldsProps) {
  const [chosen, setChosen] = useState<string>(now)
  const row = roles.find(({ name }) => name === chosen)
  const options = rolesToOffer(roles).map(({ name, description }) => ({ value: name, text: `${name}: ${description}` }))
  return (
    <>
      <Select name="role" label="Role" value={now} options={options} onInput={setChosen} />
      {row?.byProject && <ProjectChecks within={null} chosen={projects ?? []} />}
    </>
  )
}

function roleFrom(values: Values) {
  const projects = projectsFrom(values)
  return { role: values.role as Role, ...(projects.length > 0 && { projects }) }
}

function Invite({ roles, close, done }: { roles: readonly RoleRow[]; close(): void; done(): void }) {
  const [created, setCreated] = useState<Schemas['InvitationWithSecret'] | null>(null)
  if (created) {
    return (
      <>
        <div class="body stack">
          <p>
            Send this link to <b>{created.email}</b>. It works once, until <Time at={created.expiresAt} form="full" />,
            and isn't shown again. If email is set up, we have sent it too.
          </p>
          <div class="secret">
            <CopyLine text={created.url} what="link" />
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
      submit="Create the invitation"
      cancel={close}
      done={(invitation) => {
        setCreated(invitation)
        done()
      }}
    >
      <Field name="email" label="Email" type="email" placeholder="grace@example.com" autocomplete="off" autoFocus />
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
        <RemovalNotes of={of} />
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
          <p class="soft">If the new role allows less, so do all tokens that {of.name} created.</p>
        </Form>
      </Dialog>
    </>
  )
}

/** What removing a member means. */
function RemovalNotes({ of }: { of: Member }) {
  const tokens = useList(may('tokens:read') ? call('get', '/tokens', page) : null)
  const theirs = (tokens.items ?? []).filter(({ createdBy }) => createdBy === of.userId)
  return (
    <>
      <p>
        <b>{of.email}</b> loses access to this account. What they created stays.
      </p>
      <p>
        {theirs.length === 0
          ? 'They have no tokens.'
          : `Their tokens are revoked: ${theirs.map(({ name }) => name).join(', ')}.`}
      </p>
      <p class="soft">You can invite them again.</p>
    </>
  )
}

function RevokeInvitation({ of, done }: { of: Schemas['Invitation']; done(): void }) {
  return (
    <ConfirmButton
      text="Revoke"
      label={`Revoke the invitation of ${of.email}`}
      title={`Revoke the invitation of ${of.email}?`}
      action="Revoke the invitation"
      call={call('delete', '/members/invitations/{id}', { params: { path: { id: of.id } } }) as Call<unknown>}
      done={done}
    >
      <p>The link stops working.</p>
    </ConfirmButton>
  )
}
