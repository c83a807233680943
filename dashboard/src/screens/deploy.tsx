// The dialog that builds a ref of a project.
import { Check, call, Dialog, type DialogState, Field, Form, go, Select, useQuery } from '../kit/index.ts'

type DeployProps = {
  of: DialogState
  project?: string
  /** Initial values of the fields. */
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
        hint="Default: the production branch."
        value={branch}
        autocomplete="off"
        mono
        autoFocus
      />
      <Check
        name="production"
        label="Deploy to production"
        hint="Goes live at the production URL when ready. Otherwise it's a preview."
        checked={production}
      />
    </Form>
  )
}
