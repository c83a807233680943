// Starts the console.
import { render } from 'preact'
import { startRouter } from './kit/router.tsx'
import { startClock } from './kit/time.tsx'
import { loadScreens, routes } from './routes.ts'
import { App } from './shell/app.tsx'

startRouter(routes)
startClock()
render(<App />, document.getElementById('app')!)
// Loads the other screens at once if one of them is opened, otherwise after the first screen.
const preload = () => void loadScreens().catch(() => {})
if (location.pathname !== '/') preload()
else addEventListener('load', () => setTimeout(preload, 500))
