// Starts the console: the address, the session, the live stream, then the screen.
import { render } from 'preact'
import { startRouter } from './kit/router.tsx'
import { startClock } from './kit/time.tsx'
import { routes } from './routes.ts'
import { App } from './shell/app.tsx'

startRouter(routes)
startClock()
render(<App />, document.getElementById('app')!)
