// The page around a screen: navigation, who and whether live, and the places for messages.
import { useEffect, useState } from 'preact/hooks'
import { ProblemView, Toasts } from '../kit/feedback.tsx'
import { offlineSince, startLive } from '../kit/live.ts'
import { findRoute, Outlet, place } from '../kit/router.tsx'
import { access, openSession } from '../kit/session.ts'
import { State } from '../kit/state.tsx'
import { Time } from '../kit/time.tsx'
import { SearchPlace, startSearchKey } from './find.tsx'
import { Invitations } from './invitations.tsx'
import { Navigation } from './navigation.tsx'

export function App() {
  const bare = findRoute(place.value.path)?.route.bare ?? false
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
  const [failure, fail] = useState<unknown>(null)
  useEffect(() => {
    openSession().then(() => {
      if (started) return
      started = true
      void startLive()
      startSearchKey()
    }, fail)
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
            <State is="bad">Offline</State> since <Time at={offlineSince.value} form="clock" />. What you see is from
            then; the page catches up by itself.
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
      {access.value && <SearchPlace />}
    </div>
  )
}
