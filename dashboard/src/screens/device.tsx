// Signs a program in, such as the command line, by the code that it shows.
import { access, callAuth, Field, Form, go, Panel, place, Select, Top, toast } from '../kit/index.ts'

const parts: Record<string, string[] | undefined> = {
  everything: undefined,
  deploy: ['deployments:write', 'projects:read', 'domains:read', 'events:read'],
  nothing: undefined,
}

export default function Device() {
  const { account } = access.value!
  return (
    <>
      <Top title="Sign in a program" />
      <Panel>
        <Form
          call={({ userCode, may = '' }) =>
            callAuth('POST', '/device/answer', {
              userCode,
              approve: may !== 'nothing',
              account: account.id,
              scopes: parts[may],
            })
          }
          submit="Approve"
          done={() => {
            toast('Done.')
            go('/tokens')
          }}
        >
          <p>
            For {account.name}. <b>Only approve if you started this</b> and see the same code there.
          </p>
          <Field name="userCode" label="Code" value={place.value.search.slice(6)} />
          <Select name="may" label="It may do" options={Object.keys(parts)} />
        </Form>
      </Panel>
    </>
  )
}
