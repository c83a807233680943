// A build that is followed to its end: its log, its result and the exit code.
import type { Deployment } from '../../../sdk/src/types.ts'
import type { Context } from './context.ts'
import { tellPinned } from './deployments.ts'
import { exitCodes } from './failures.ts'
import { deploymentOf, followLog, type Uploading, waitUntilBuilt } from './messages.ts'
import type { Output } from './output.ts'
import { fromServer } from './shape.ts'
import { clean, cleanLog } from './text.ts'

/** Says how a build went; returns the exit code for that. */
export function ended({ id, state, error }: Deployment, out: Output): number {
  if (state === 'READY' || state === 'BUILDING') {
    if (state === 'READY') out.say(`${out.paint('green', 'Ready:')} ${clean(id)}`)
    return exitCodes.ok
  }
  const why = error ? `: ${clean(error.message)} (${clean(error.code)})` : ''
  out.say(`${out.paint('red', state === 'CANCELED' ? 'Canceled' : 'Failed')}${why}`)
  // Older servers send no excerpt.
  const excerpt = fromServer(() => error?.excerpt?.split('\n') ?? [])
  if (excerpt.length > 1) for (const line of excerpt) out.say(`  ${clean(line)}`)
  return exitCodes.failed
}

/** Writes the log until the build ends. */
export async function followBuild(context: Context, { id }: Deployment): Promise<Deployment> {
  const { out } = context
  const log = (async () => {
    for await (const line of followLog(context, id)) {
      const text = cleanLog(line.text)
      out.say(line.stream === 'system' ? out.paint('grey', text) : text)
    }
  })().catch((error) => {
    // The account has as many log readers as it may have. The build continues without us.
    if (error.status !== 429) throw error
  })
  const [done] = await Promise.all([waitUntilBuilt(context, id), log])
  return done
}

/** Creates a deployment that needs no upload; at Ctrl-C, says how to follow its build. */
export async function startBuild(context: Context, path: string, body: object): Promise<Uploading> {
  const creating = createBuild(context, path, body)
  const tell = () =>
    creating.then(
      (made) => sayContinues(context, made),
      () => {},
    )
  context.undo.add(tell)
  const made = await creating
  context.signal.throwIfAborted()
  context.undo.delete(tell)
  return made
}

/** Follows the build of a deployment that needs no upload, and shows its result; `wait: false` only names it. */
export async function finishBuild(context: Context, made: Uploading, wait: boolean): Promise<number> {
  if (!wait) return showStarted(context, made)
  context.out.say(`Building ${clean(made.id)}`)
  const tell = tellContinues(context, made)
  const done = await followBuild(context, made)
  context.undo.delete(tell)
  return showResult(context, done)
}

/** Says at Ctrl-C how to follow the build again. */
export function tellContinues(context: Context, made: Deployment): () => Promise<void> {
  const tell = async () => sayContinues(context, made)
  context.undo.add(tell)
  return tell
}

function sayContinues({ out }: Context, { id }: Deployment): void {
  out.say(`The build continues. To follow it, run \`berth logs -f ${clean(id)}\`.`)
}

/** A production deployment that a pin keeps from taking over has an exit code of its own. */
function codeOfPin({ out }: Context, { id, production, current, pinned }: Deployment): number {
  if (!production || current || !pinned) return exitCodes.ok
  tellPinned(out, pinned, id)
  return exitCodes.pinned
}

/** Older servers send no URL of the branch. */
function sayBranch({ out }: Context, { branchUrl }: Deployment): void {
  if (branchUrl) out.say(`Branch: ${clean(branchUrl)}`)
}

export function showStarted(context: Context, made: Deployment): number {
  context.out.say(`Started ${clean(made.id)}`)
  // Older servers send no warnings. With a followed build they are in its log.
  const warnings = fromServer(() => made.warnings?.map(({ message }) => clean(message)) ?? [])
  for (const warning of warnings) context.out.say(`Warning: ${warning}`)
  sayBranch(context, made)
  context.out.show(made, () => clean(made.url))
  return codeOfPin(context, made)
}

export function showResult(context: Context, done: Deployment): number {
  const { out } = context
  const code = ended(done, out)
  if (done.state === 'READY') sayBranch(context, done)
  out.show(done, () => (done.state === 'READY' ? clean(done.url) : ''))
  return code === exitCodes.ok ? codeOfPin(context, done) : code
}

/** Creates a deployment. Ctrl-C doesn't abort the request: without its response, nobody could cancel what it created. */
export async function createBuild(context: Context, path: string, body: object): Promise<Uploading> {
  const { signal } = new AbortController()
  return deploymentOf(await context.send('POST', path, { body, signal }))
}
