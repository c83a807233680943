// Starts the console: the address, the session, the live stream, then the screen.
import { render } from 'preact'
import { startRouter } from './kit/router.tsx'
import { startClock } from './kit/time.tsx'
import { loadScreens, routes } from './routes.ts'
import { App } from './shell/app.tsx'

startRouter(routes)
startClock()
render(<App />, document.getElementById('app')!)
// Beside the session, where one of the other screens is wanted; else when the first one is there.
const prepare = () => void loadScreens().catch(() => {})
if (location.pathname !== '/') prepare()
else addEventListener('load', () => setTimeout(prepare, 500))
