// The navigation, with the live state and the signed-in person at the bottom.
import { useEffect } from 'preact/hooks'
import { toastError } from '../kit/feedback.tsx'
import { live, offlineSince } from '../kit/live.ts'
import { currentUrl } from '../kit/router.tsx'
import { access, may, me, signOut, switchAccount } from '../kit/session.ts'
import { State, type Tone } from '../kit/state.tsx'
import { Time } from '../kit/time.tsx'
import { account, useAccount } from './account.ts'
import { FindButton } from './find.tsx'
import { links } from './links.ts'

export function Navigation() {
  const { path } = currentUrl.value
  const shown = links.filter(({ scope }) => scope === null || may(scope))
  useEffect(() => {
    // On a phone the links are a row that scrolls sideways.
    document.querySelector('.side [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [path, access.value === null])
  return (
    <nav class="side" aria-label="Main">
      {access.value && <AccountLoader />}
      <a class="brand" href="/">
        <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
          <path d="M4 3v14M4 10h7a3.5 3.5 0 0 1 0 7H4M4 3h6a3.5 3.5 0 0 1 0 7" />
        </svg>
        Berth
      </a>
      {access.value && <FindButton />}
      <AccountSwitcher />
      {access.value &&
        shown.map(({ href, text, count, below }) => {
          const here = path === href || path.startsWith(`${below ?? href}/`) || path === below
          const usage = count && account.value?.usage[count]
          return (
            <a key={href} href={href} aria-current={here ? 'page' : undefined}>
              {text}
              {usage ? <span class="count">{usage}</span> : null}
            </a>
          )
        })}
      <div class="foot soft">
        <LiveState />
        {me.value && (
          <>
            <a href="/me" aria-current={path === '/me' ? 'page' : undefined}>
              {me.value.user.email}
            </a>
            <div class="row">
              <span>{access.value?.role}</span>
              <button type="button" class="quiet right" onClick={() => void signOut().catch(toastError)}>
                Sign out
              </button>
            </div>
          </>
        )}
      </div>
    </nav>
  )
}

function AccountLoader() {
  useAccount()
  return null
}

/** Only for people who are in several. */
function AccountSwitcher() {
  const memberships = me.value?.memberships ?? []
  if (memberships.length < 2) return null
  return (
    <select
      class="switcher"
      aria-label="Account"
      value={access.value?.account.id}
      onChange={(event) => switchAccount(event.currentTarget.value)}
    >
      {memberships.map((one) => (
        <option key={one.account.id} value={one.account.id}>
          {one.account.name}
        </option>
      ))}
    </select>
  )
}

const states: Record<typeof live.value, [Tone, string]> = {
  connecting: ['busy', 'Connecting'],
  live: ['ready', 'Live'],
  offline: ['bad', 'Offline'],
  off: ['off', 'Not live'],
}

function LiveState() {
  const [tone, word] = states[live.value]
  return (
    <div role="status">
      <State is={tone}>{word}</State>
      {offlineSince.value !== null && (
        <>
          {' '}
          since <Time at={offlineSince.value} form="clock" />
        </>
      )}
    </div>
  )
}
