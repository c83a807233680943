// Follows builds: prints the log and the result, and chooses the exit code.
import type { Deployment } from '../../../sdk/src/types.ts'
import type { Context } from './context.ts'
import { sayPinned } from './deployments.ts'
import { exitCodes } from './failures.ts'
import { deploymentOf, followLog, type Uploading, waitUntilBuilt } from './messages.ts'
import type { Output } from './output.ts'
import { fromServer } from './shape.ts'
import { clean, cleanLog } from './text.ts'

/** Prints the result of a build; returns its exit code. */
export function reportResult({ id, state, error }: Deployment, out: Output): number {
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

/** Prints the log until the build finishes. */
export async function followBuild(context: Context, { id }: Deployment): Promise<Deployment> {
  const { out } = context
  const log = (async () => {
    for await (const line of followLog(context, id)) {
      const text = cleanLog(line.text)
      out.say(line.stream === 'system' ? out.paint('grey', text) : text)
    }
  })().catch((error) => {
    // Too many log readers: wait for the result without a log.
    if (error.status !== 429) throw error
  })
  const [done] = await Promise.all([waitUntilBuilt(context, id), log])
  return done
}

/** Creates a deployment without upload. At Ctrl-C, says how to follow its build. */
export async function startBuild(context: Context, path: string, body: object): Promise<Uploading> {
  const creating = createBuild(context, path, body)
  const say = () =>
    creating.then(
      (created) => sayContinues(context, created),
      () => {},
    )
  context.undo.add(say)
  const created = await creating
  context.signal.throwIfAborted()
  context.undo.delete(say)
  return created
}

/** Follows the build of a deployment and shows its result, or only its ID if `wait` is false. */
export async function finishBuild(context: Context, created: Uploading, wait: boolean): Promise<number> {
  if (!wait) return showStarted(context, created)
  context.out.say(`Building ${clean(created.id)}`)
  const say = onInterruptSayContinues(context, created)
  const done = await followBuild(context, created)
  context.undo.delete(say)
  return showResult(context, done)
}

/** At Ctrl-C, says how to follow the build again; returns the undo function. */
export function onInterruptSayContinues(context: Context, created: Deployment): () => Promise<void> {
  const say = async () => sayContinues(context, created)
  context.undo.add(say)
  return say
}

function sayContinues({ out }: Context, { id }: Deployment): void {
  out.say(`The build continues. To follow it, run \`berth logs -f ${clean(id)}\`.`)
}

/** If a pin keeps a production deployment from taking over, the exit code says so. */
function pinnedExitCode({ out }: Context, { id, production, current, pinned }: Deployment): number {
  if (!production || current || !pinned) return exitCodes.ok
  sayPinned(out, pinned, id)
  return exitCodes.pinned
}

/** Older servers send no branch URL. */
function sayBranch({ out }: Context, { branchUrl }: Deployment): void {
  if (branchUrl) out.say(`Branch: ${clean(branchUrl)}`)
}

export function showStarted(context: Context, created: Deployment): number {
  context.out.say(`Started ${clean(created.id)}`)
  // Older servers send no warnings. The log of a followed build has them.
  const warnings = fromServer(() => created.warnings?.map(({ message }) => clean(message)) ?? [])
  for (const warning of warnings) context.out.say(`Warning: ${warning}`)
  sayBranch(context, created)
  context.out.show(created, () => clean(created.url))
  return pinnedExitCode(context, created)
}

export function showResult(context: Context, done: Deployment): number {
  const { out } = context
  const code = reportResult(done, out)
  if (done.state === 'READY') sayBranch(context, done)
  out.show(done, () => (done.state === 'READY' ? clean(done.url) : ''))
  return code === exitCodes.ok ? pinnedExitCode(context, done) : code
}

/** Creates a deployment. Ctrl-C doesn't abort the request, because we need its response to cancel the deployment. */
export async function createBuild(context: Context, path: string, body: object): Promise<Uploading> {
  const { signal } = new AbortController()
  return deploymentOf(await context.send('POST', path, { body, signal }))
}
