// The frame of the page: navigation, the current screen, and messages.
import { useEffect, useState } from 'preact/hooks'
import { ProblemView, Toasts } from '../kit/feedback.tsx'
import { offlineSince, startLive } from '../kit/live.ts'
import { currentUrl, findRoute, Outlet } from '../kit/router.tsx'
import { access, openSession } from '../kit/session.ts'
import { State } from '../kit/state.tsx'
import { Time } from '../kit/time.tsx'
import { SearchDialog, startSearchKey } from './find.tsx'
import { Invitations } from './invitations.tsx'
import { Navigation } from './navigation.tsx'

export function App() {
  const bare = findRoute(currentUrl.value.path)?.route.bare ?? false
  return (
    <>
      {bare ? (
        <main class="bare">
          <Outlet />
        </main>
      ) : (
        <Inside />
      )}
      <Toasts />
    </>
  )
}

let started = false

function Inside() {
  const [failure, setFailure] = useState<unknown>(null)
  useEffect(() => {
    openSession().then(() => {
      if (started) return
      started = true
      void startLive()
      startSearchKey()
    }, setFailure)
  }, [])
  return (
    <div class="page">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Navigation />
      <main id="main" tabIndex={-1}>
        {offlineSince.value !== null && (
          <p class="offline">
            <State is="bad">Offline</State> since <Time at={offlineSince.value} form="clock" />. This page shows data
            from then and will catch up automatically.
          </p>
        )}
        <Invitations />
        {access.value ? (
          <Outlet />
        ) : failure ? (
          <ProblemView error={failure} retry={() => location.reload()} />
        ) : (
          <div aria-busy="true" />
        )}
      </main>
      {access.value && <SearchDialog />}
    </div>
  )
}
