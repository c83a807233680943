// Your invitations, to accept or decline.
import { Act } from '../kit/act.tsx'
import { callAuth } from '../kit/api.ts'
import { me, readMe, switchAccount } from '../kit/session.ts'

export function Invitations() {
  return (
    <>
      {me.value?.invitations.map(({ id, account, role }) => (
        <div key={id} class="notice row wrap">
          <span>
            You're invited to <b>{account.name}</b> as {role}.
          </span>
          <div class="right row">
            <Act call={callAuth('DELETE', `/me/invitations/${id}`)} text="Decline" kind="quiet" done={readMe} />
            <Act
              call={callAuth('POST', `/me/invitations/${id}`)}
              text="Accept"
              done={() => switchAccount(account.id)}
            />
          </div>
        </div>
      ))}
    </>
  )
}
