// The dialog for a new project: its name, repository and framework.
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
          hint="Lowercase letters, digits and dashes. It becomes part of the URL."
          placeholder="docs"
          autocomplete="off"
          mono
          required
          autoFocus
        />
        <Field
          name="repo"
          label="Repository"
          hint="Owner and name at this server's Git host."
          placeholder="acme/docs"
          autocomplete="off"
          mono
          required
        />
        <Select name="framework" label="Framework" value="auto" options={frameworks} />
      </Form>
    </Dialog>
  )
}
