// The push hook: how to set it up at the Git host, and commit statuses.
import { useState } from 'preact/hooks'
import {
  BerthError,
  Confirm,
  ConfirmButton,
  CopyLine,
  call,
  Empty,
  Facts,
  Field,
  Form,
  Loaded,
  may,
  Panel,
  type Schemas,
  Select,
  State,
  Time,
  toast,
  useDialog,
  useParam,
  useQuery,
} from '../kit/index.ts'
import { Ask } from './parts/ask.tsx'
import { Filter } from './parts/filters.tsx'
import type { Project } from './project-type.ts'

type PushHook = Schemas['PushHook']

export function Hook({ project }: { project: Project }) {
  const path = { path: { project: project.name } }
  const hook = useQuery(call('get', '/projects/{project}/hook', { params: path }), {
    on: ['deployment.created', 'project.updated'],
    when: ({ data }) => data.project === project.name || data.name === project.name,
  })
  const creating = useDialog()
  const [secret, setSecret] = useState<string | null>(null)
  const none = hook.error instanceof BerthError && hook.error.status === 404
  const make = may('projects:write') && (
    <button type="button" class={none ? 'primary' : ''} onClick={creating.open}>
      {none ? 'Create the push hook' : 'New secret'}
    </button>
  )
  return (
    <>
      {none ? (
        <Panel title="Push hook" call={hook.call}>
          <Empty title="Deploy on every push">
            <p>The production branch goes to production. Other branches get previews.</p>
            {make}
          </Empty>
        </Panel>
      ) : (
        <Panel title="Push hook" actions={make} call={hook.call} pad>
          <Loaded of={hook}>
            {(found) => <Setup project={project} hook={found} secret={secret} refresh={hook.refetch} />}
          </Loaded>
        </Panel>
      )}
      {!none && hook.data && <Statuses project={project} hook={hook.data} refresh={hook.refetch} />}
      <Ask
        of={creating}
        title={none ? 'Create the push hook' : 'New secret'}
        call={call('post', '/projects/{project}/hook', {
          params: path,
          ...(!none && { body: { overlapSeconds: 3600 } }),
        })}
        action={none ? 'Create' : 'Create a new secret'}
        done={({ secret: created }) => {
          setSecret(created)
          hook.refetch()
        }}
      >
        <p>
          {none
            ? 'You get a URL and a secret for your Git host. The secret is shown once.'
            : 'The old secret works for another hour. The new one is shown once.'}
        </p>
      </Ask>
    </>
  )
}

const hosts = {
  '': {
    text: 'GitHub',
    where: 'Settings → Webhooks → Add webhook',
    url: 'Payload URL',
    secret: 'Secret',
    more: 'Content type application/json; just the push event.',
  },
  gitlab: {
    text: 'GitLab',
    where: 'Settings → Webhooks → Add new webhook',
    url: 'URL',
    secret: 'Secret token',
    more: 'Trigger: push events only.',
  },
  gitea: {
    text: 'Gitea or Forgejo',
    where: 'Settings → Webhooks → Add webhook',
    url: 'Target URL',
    secret: 'Secret',
    more: 'Trigger on push events; POST, application/json.',
  },
} as const

type HookProps = { project: Project; hook: PushHook; secret: string | null; refresh(): void }

function Setup({ project, hook, secret, refresh }: HookProps) {
  const [chosen] = useParam('host')
  const host = hosts[(chosen in hosts ? chosen : '') as keyof typeof hosts]
  return (
    <div class="stack">
      <div class="row wrap">
        <Filter
          name="host"
          label="Git host"
          options={Object.fromEntries(Object.entries(hosts).map(([key, { text }]) => [key, text]))}
        />
        {hook.lastPushAt ? (
          <State is="ready">
            Last push <Time at={hook.lastPushAt} />
          </State>
        ) : (
          <State is="busy">Waiting for the first push</State>
        )}
      </div>
      <ol class="numbered">
        <li>
          Open <code>{project.repo}</code> on {host.text} and go to {host.where}.
        </li>
        <li>
          {host.url}:
          <CopyLine text={hook.url} what="URL" />
        </li>
        <li>
          {host.secret}:
          {secret ? (
            <>
              <CopyLine text={secret} what="secret" />
              <span class="soft">Copy it now. It is shown only once.</span>
            </>
          ) : (
            <span class="soft"> shown only once. If you lost it, create a new one.</span>
          )}
        </li>
        <li>{host.more}</li>
        <li>
          Push to <code>{project.settings.productionBranch}</code>. The deployment appears here automatically.
          {!project.settings.autoDeploy && (
            <>
              {' '}
              <State is="bad">Pushes start no deployments</State>{' '}
              <a href={`/projects/${project.name}/settings`}>Turn that on in the settings</a>
            </>
          )}
        </li>
      </ol>
      {may('projects:write') && (
        <div>
          <ConfirmButton
            text="Delete the push hook"
            title="Delete the push hook"
            call={call('delete', '/projects/{project}/hook', { params: { path: { project: project.name } } })}
            action="Delete the push hook"
            done={() => {
              toast('Deleted.')
              refresh()
            }}
          >
            <p>Pushes will be refused, and commits get no status.</p>
          </ConfirmButton>
        </div>
      )}
    </div>
  )
}

function Statuses({ project, hook, refresh }: Omit<HookProps, 'secret'>) {
  const removing = useDialog()
  const path = { path: { project: project.name } }
  const target = hook.commitStatus
  const done = (text: string) => () => {
    toast(text)
    refresh()
  }
  return (
    <Panel
      title="Commit statuses"
      call={call('get', '/projects/{project}/hook', { params: path })}
      state={
        target ? (
          <State is={target.error ? 'bad' : 'ready'}>{target.error ? 'Failing' : 'On'}</State>
        ) : (
          <State is="off">Off</State>
        )
      }
    >
      {target && (
        <div class="body">
          <Facts
            rows={[
              ['Posted to', <code>{target.apiUrl}</code>],
              ['Last posted', target.postedAt ? <Time at={target.postedAt} /> : 'never'],
              ...(target.error ? ([['Problem', target.error]] as [string, string][]) : []),
            ]}
          />
        </div>
      )}
      {may('projects:write') && (
        <Form
          call={({ provider, apiUrl, token = '' }) =>
            call('put', '/projects/{project}/hook/status', {
              params: path,
              body: { provider: provider as 'github' | 'gitea' | 'gitlab', ...(apiUrl && { apiUrl }), token },
            })
          }
          submit={target ? 'Replace' : 'Post statuses'}
          cancel={target ? removing.open : undefined}
          cancelText="Remove"
          done={done('Commits now get a status.')}
        >
          <p class="soft">
            The host shows next to each commit whether it was deployed. The token must be able to write commit statuses.
          </p>
          <div class="fields">
            <Select
              name="provider"
              label="Host"
              value={target?.provider ?? 'github'}
              options={[
                { value: 'github', text: 'GitHub' },
                { value: 'gitlab', text: 'GitLab' },
                { value: 'gitea', text: 'Gitea or Forgejo' },
              ]}
            />
            <Field
              name="apiUrl"
              label="API URL"
              placeholder="https://api.github.com"
              value={target?.apiUrl ?? ''}
              mono
            />
            <Field name="token" label="Token" type="password" autocomplete="off" required />
          </div>
        </Form>
      )}
      <Confirm
        of={removing}
        title="Stop posting statuses?"
        call={call('delete', '/projects/{project}/hook/status', { params: path })}
        action="Stop posting"
        done={done('Commits no longer get a status.')}
      >
        <p>Deletes the token. Existing statuses stay.</p>
      </Confirm>
    </Panel>
  )
}
