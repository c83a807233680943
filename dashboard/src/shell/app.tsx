// The page around a screen: navigation, who and whether live, and the places for messages.
import { useEffect, useState } from 'preact/hooks'
import { ProblemView, Toasts } from '../kit/feedback.tsx'
import { startLive } from '../kit/live.ts'
import { findRoute, Outlet, place } from '../kit/router.tsx'
import { access, openSession } from '../kit/session.ts'
import { SearchPlace, startSearchKey } from './find.tsx'
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
