// The settings of a project: how it is built and served, and its deletion.
import { useRef } from 'preact/hooks'
import {
  Check,
  call,
  DeletePanel,
  Facts,
  Field,
  Form,
  go,
  may,
  Panel,
  type Schemas,
  Select,
  toast,
  useQuery,
  type Values,
} from '../kit/index.ts'
import { frameworks } from './frameworks.ts'
import type { Project } from './project-type.ts'

type Network = Schemas['ProjectSettings']['buildNetwork']
const networks: { value: Network; text: string }[] = [
  { value: 'public', text: 'The public internet' },
  { value: 'registry', text: 'Only package registry and repository' },
  { value: 'none', text: 'No network' },
]

export function Settings({ project }: { project: Project }) {
  const writes = may('projects:write')
  return (
    <>
      <Panel
        title="Project"
        call={call('get', '/projects/{project}', { params: { path: { project: project.name } } })}
        pad
      >
        <Facts
          rows={[
            ['Name', project.name],
            ['ID', <code>{project.id}</code>],
            ['Region', project.region],
            ['URL', <a href={project.productionUrl}>{new URL(project.productionUrl).host}</a>],
          ]}
        />
      </Panel>
      {writes ? <SettingsForm project={project} /> : <ReadOnly project={project} />}
      {writes && <Danger project={project} />}
    </>
  )
}

const readOf = ({ name }: Project) => call('get', '/projects/{project}', { params: { path: { project: name } } })

function ReadOnly({ project }: { project: Project }) {
  const { framework, repo, settings } = project
  return (
    <Panel title="Build and serve" call={readOf(project)} pad>
      <Facts
        rows={[
          ['Repository', <code>{repo}</code>],
          ['Framework', framework],
          ...Object.entries(settings).map(([name, value]): [string, string] => [
            name,
            value === null ? 'automatic' : String(value),
          ]),
        ]}
      />
    </Panel>
  )
}

const spaChoices = [
  { value: 'null', text: 'As detected' },
  { value: 'true', text: 'Always' },
  { value: 'false', text: 'Never' },
]

/** Sends only changed fields, so that two people don't undo each other's changes. */
function changesOf(project: Project, values: Values) {
  const { settings } = project
  const wanted = {
    productionBranch: values['settings/productionBranch'] || null,
    rootDirectory: values['settings/rootDirectory'] || null,
    installCommand: values['settings/installCommand'] || null,
    buildCommand: values['settings/buildCommand'] || null,
    outputDirectory: values['settings/outputDirectory'] || null,
    spaFallback: JSON.parse(values['settings/spaFallback'] ?? 'null') as boolean | null,
    cleanUrls: values['settings/cleanUrls'] === 'on',
    publishAnyway: values['settings/publishAnyway'] === 'on',
    autoDeploy: values['settings/autoDeploy'] === 'on',
    hsts: values['settings/hsts'] === 'on',
    buildNetwork: values['settings/buildNetwork'] as Network,
    serverNetwork: values['settings/serverNetwork'] as Network,
    instances: Number(values['settings/instances']),
  }
  const changed = Object.entries(wanted).filter(([name, value]) => value !== settings[name as keyof typeof settings])
  return {
    ...(values.repo !== project.repo && { repo: values.repo ?? '' }),
    ...(values.framework !== project.framework && { framework: values.framework as Project['framework'] }),
    ...(changed.length > 0 && { settings: Object.fromEntries(changed) as Partial<typeof wanted> }),
  }
}

function SettingsForm({ project }: { project: Project }) {
  // The initial values of the fields; someone else may change the project meanwhile.
  const base = useRef(project)
  const { settings } = base.current
  const byFramework = 'Default: detected from the repository.'
  return (
    <Panel title="Build and serve" call={readOf(project)}>
      <Form
        call={(values) =>
          call('patch', '/projects/{project}', {
            params: { path: { project: project.name } },
            body: changesOf(base.current, values),
          })
        }
        submit="Save changes"
        done={(saved) => {
          base.current = saved
          const waits = saved.changes?.some(({ appliesTo }) => appliesTo === 'next deployment')
          toast(waits ? 'Saved. Some changes take effect with the next deployment.' : 'Saved.')
        }}
      >
        <div class="fields">
          <Field name="repo" label="Repository" value={project.repo} mono required />
          <Select name="framework" label="Framework" value={project.framework} options={frameworks} />
          <Field
            name="settings/productionBranch"
            label="Production branch"
            value={settings.productionBranch}
            hint="Default: the default branch of the repository."
            mono
          />
          <Field
            name="settings/rootDirectory"
            label="Root directory"
            value={settings.rootDirectory ?? ''}
            hint="Default: the root of the repository."
            mono
          />
          <Field
            name="settings/installCommand"
            label="Install command"
            value={settings.installCommand ?? ''}
            hint={byFramework}
            mono
          />
          <Field
            name="settings/buildCommand"
            label="Build command"
            value={settings.buildCommand ?? ''}
            hint={byFramework}
            mono
          />
          <Field
            name="settings/outputDirectory"
            label="Output directory"
            value={settings.outputDirectory ?? ''}
            hint={byFramework}
            mono
          />
          <Field
            name="settings/instances"
            label="Server instances"
            type="number"
            value={String(settings.instances)}
            hint="1 to 10. For Node.js servers."
          />
          <Select name="settings/buildNetwork" label="Build network" value={settings.buildNetwork} options={networks} />
          <Select
            name="settings/serverNetwork"
            label="Server network"
            value={settings.serverNetwork}
            options={networks}
          />
          <Select
            name="settings/spaFallback"
            label="Serve index.html for unknown paths"
            value={String(settings.spaFallback)}
            options={spaChoices}
            hint="For single-page apps."
          />
        </div>
        <Check name="settings/autoDeploy" label="Deploy on every push" checked={settings.autoDeploy} />
        <Check name="settings/cleanUrls" label="Serve /about from about.html" checked={settings.cleanUrls} />
        <Check
          name="settings/publishAnyway"
          label="Publish files that look secret"
          checked={settings.publishAnyway}
          hint="Private keys, .env files, PHP and databases, on a site without a build."
        />
        <Check
          name="settings/hsts"
          label="Browsers use only HTTPS (HSTS)"
          checked={settings.hsts}
          hint="They remember this for a year after each visit."
        />
      </Form>
    </Panel>
  )
}

function Danger({ project }: { project: Project }) {
  const { name } = project
  return (
    <DeletePanel
      title="Delete the project"
      hint="Deletes everything but the repository."
      typed={name}
      call={call('delete', '/projects/{project}', { params: { path: { project: name } } })}
      done={() => {
        toast(`Deleted ${name}.`)
        go('/')
      }}
    >
      <p>
        <b>Deleted for good:</b> its deployments, logs, variables, push hook and traffic.{' '}
        {new URL(project.productionUrl).host} stops working at once.
      </p>
      <p class="soft">
        The repository <code>{project.repo}</code> stays.
      </p>
      <Attached project={name} />
    </DeletePanel>
  )
}

/** The domains that prevent the project from being deleted. */
function Attached({ project }: { project: string }) {
  const domains = useQuery(
    may('domains:read') ? call('get', '/domains', { params: { query: { project: [project], limit: 100 } } }) : null,
  )
  const attached = domains.data?.domains ?? []
  if (attached.length === 0) return null
  return (
    <p>
      <span class="state bad">It has domains.</span> Move or delete them first:{' '}
      {attached.map(({ name }, index) => (
        <>
          {index > 0 && ', '}
          <a href={`/domains/${encodeURIComponent(name)}`}>{name}</a>
        </>
      ))}
    </p>
  )
}
