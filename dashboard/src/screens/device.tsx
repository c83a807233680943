// Approves the sign-in of a program such as the CLI, by the code that it shows.
import { access, callAuth, currentUrl, Field, Form, go, Panel, Select, Top, toast } from '../kit/index.ts'

const scopes: Record<string, string[] | undefined> = {
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
          call={({ userCode, allow = '' }) =>
            callAuth('POST', '/device/answer', {
              userCode,
              approve: allow !== 'nothing',
              account: account.id,
              scopes: scopes[allow],
            })
          }
          submit="Approve"
          done={() => {
            toast('Approved.')
            go('/tokens')
          }}
        >
          <p>
            Account: {account.name}. <b>Only approve a sign-in that you started</b> and that shows the same code.
          </p>
          <Field name="userCode" label="Code" value={currentUrl.value.search.slice(6)} />
          <Select name="allow" label="Allow" options={Object.keys(scopes)} />
        </Form>
      </Panel>
    </>
  )
}
