// The dialog for a new project: a name, a repository, and what it is built with.
import { call, Dialog, type DialogState, Field, Form, go, type Schemas, Select } from '../kit/index.ts'
import { frameworks } from './frameworks.ts'

export function NewProject({ of }: { of: DialogState }) {
  return (
    <Dialog of={of} title="New project">
      <Form
        call={({ name = '', repo = '', framework }) =>
          call('post', '/projects', { body: { name, repo, framework: framework as Schemas['Framework'] } })
        }
        submit="Create project"
        cancel={of.close}
        done={({ name }) => go(`/projects/${name}`)}
      >
        <Field
          name="name"
          label="Name"
          hint="Lower-case letters, digits and dashes. It becomes part of the address."
          placeholder="docs"
          autocomplete="off"
          mono
          required
          autoFocus
        />
        <Field
          name="repo"
          label="Repository"
          hint="Owner and repository at the host that this server uses."
          placeholder="acme/docs"
          autocomplete="off"
          mono
          required
        />
        <Select name="framework" label="Built with" value="auto" options={frameworks} />
      </Form>
    </Dialog>
  )
}
