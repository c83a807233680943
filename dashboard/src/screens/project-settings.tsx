// How a project is built and served, and its end.
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
            ['Id', <code>{project.id}</code>],
            ['Region', project.region],
            ['Address', <a href={project.productionUrl}>{new URL(project.productionUrl).host}</a>],
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
          ['Built with', framework],
          ...Object.entries(settings).map(([name, value]): [string, string] => [
            name,
            value === null ? 'found out' : String(value),
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

/** Only what differs is sent, so that two people do not undo each other's changes. */
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
  // What the fields were filled with; somebody else may change the project meanwhile.
  const base = useRef(project)
  const { settings } = base.current
  const byFramework = 'Left empty: found out from the repository.'
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
          <Select name="framework" label="Built with" value={project.framework} options={frameworks} />
          <Field
            name="settings/productionBranch"
            label="Production branch"
            value={settings.productionBranch}
            hint="Left empty: the default branch of the repository."
            mono
          />
          <Field
            name="settings/rootDirectory"
            label="Root directory"
            value={settings.rootDirectory ?? ''}
            hint="Left empty: the root of the repository."
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
            label="Instances of the server"
            type="number"
            value={String(settings.instances)}
            hint="1 to 10. For Node.js servers."
          />
          <Select name="settings/buildNetwork" label="Builds reach" value={settings.buildNetwork} options={networks} />
          <Select
            name="settings/serverNetwork"
            label="Servers reach"
            value={settings.serverNetwork}
            options={networks}
          />
          <Select
            name="settings/spaFallback"
            label="Unknown paths get index.html"
            value={String(settings.spaFallback)}
            options={spaChoices}
            hint="For single-page apps."
          />
        </div>
        <Check name="settings/autoDeploy" label="A push makes a deployment" checked={settings.autoDeploy} />
        <Check name="settings/cleanUrls" label="/about is answered with about.html" checked={settings.cleanUrls} />
        <Check
          name="settings/publishAnyway"
          label="Publish files that look secret"
          checked={settings.publishAnyway}
          hint="Private keys, .env, PHP and databases of a site without a build."
        />
        <Check
          name="settings/hsts"
          label="Browsers use only HTTPS at the domains"
          checked={settings.hsts}
          hint="They remember it for a year from each visit on."
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
      hint="Everything but the repository is deleted."
      typed={name}
      call={call('delete', '/projects/{project}', { params: { path: { project: name } } })}
      done={() => {
        toast(`Deleted ${name}.`)
        go('/')
      }}
    >
      <p>
        <b>Lost for good:</b> its deployments, logs, variables, push hook and traffic.{' '}
        {new URL(project.productionUrl).host} stops answering at once.
      </p>
      <p class="soft">
        The repository <code>{project.repo}</code> stays.
      </p>
      <Attached project={name} />
    </DeletePanel>
  )
}

/** Domains of the project: what keeps it from being deleted. */
function Attached({ project }: { project: string }) {
  const domains = useQuery(
    may('domains:read') ? call('get', '/domains', { params: { query: { project: [project], limit: 100 } } }) : null,
  )
  const attached = domains.data?.domains ?? []
  if (attached.length === 0) return null
  return (
    <p>
      <span class="state bad">It has domains.</span> The project cannot be deleted before they are moved or deleted:{' '}
      {attached.map(({ name }, index) => (
        <>
          {index > 0 && ', '}
          <a href={`/domains/${encodeURIComponent(name)}`}>{name}</a>
        </>
      ))}
    </p>
  )
}
