// The dialog that builds a ref of a project.
import { Check, call, Dialog, type DialogState, Field, Form, go, Select, useQuery } from '../kit/index.ts'

type DeployProps = {
  of: DialogState
  project?: string
  /** What the fields say at first. */
  branch?: string
  production?: boolean
}

export function Deploy(props: DeployProps) {
  return (
    <Dialog of={props.of} title={props.project ? `Deploy ${props.project}` : 'Deploy'}>
      <DeployForm {...props} />
    </Dialog>
  )
}

function DeployForm({ of, project, branch = '', production = true }: DeployProps) {
  const projects = useQuery(project ? null : call('get', '/projects', { params: { query: { limit: 100 } } }))
  return (
    <Form
      call={({ project: chosen = '', ref, production: isProduction }) =>
        call('post', '/deployments', {
          body: { project: project ?? chosen, ...(ref && { ref }), production: isProduction === 'on' },
        })
      }
      submit="Deploy"
      cancel={of.close}
      done={({ id }) => {
        of.close()
        go(`/deployments/${id}`)
      }}
    >
      {!project && (
        <Select name="project" label="Project" options={(projects.data?.projects ?? []).map(({ name }) => name)} />
      )}
      <Field
        name="ref"
        label="Branch, tag or commit"
        hint="Left empty: the production branch."
        value={branch}
        autocomplete="off"
        mono
        autoFocus
      />
      <Check
        name="production"
        label="To production"
        hint="Serves the production address when it is ready. Otherwise it is a preview."
        checked={production}
      />
    </Form>
  )
}
