// `berth deploy`: uploads what changed of a folder, follows the build, and ends with its result.
import type { Deployment } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import type { Context } from '../kit/context.ts'
import { exitCodes, usage } from '../kit/failures.ts'
import { hashFiles, listFiles, type SourceFile } from '../kit/files.ts'
import { deploymentOf, followLog, type Uploading, waitUntilBuilt } from '../kit/messages.ts'
import { clean, cleanLog, size } from '../kit/text.ts'
import { upload } from '../kit/uploads.ts'
import { ended } from './deployments.ts'
import { requireProject } from './link.ts'

type Options = { project?: string; prod?: boolean; prebuilt?: boolean; wait: boolean }

export const deploy: Action<Options> = async (context, [directory = '.'], options) => {
  const { out } = context
  const project = await requireProject(context, options.project, directory)
  const files = await readFolder(context, directory)
  context.signal.throwIfAborted()
  const asked = create(context, project, files, options)
  // Half a folder would wait for the rest until it is given up; and who is interrupted may not know yet what was made.
  const cancel = () =>
    asked.then(
      ({ id }) => context.cancel(id),
      () => {},
    )
  context.undo.add(cancel)
  const made = await asked
  context.signal.throwIfAborted()
  if (!options.wait) {
    await send(context, directory, files, made, cancel)
    out.show(made, () => clean(made.url))
    return exitCodes.ok
  }
  out.say(`Building ${clean(made.id)}`)
  // Its log and its end are asked for while the files are under way.
  const ending = new AbortController()
  const following = follow({ ...context, signal: AbortSignal.any([context.signal, ending.signal]) }, made)
  following.catch(() => {})
  await send(context, directory, files, made, cancel).catch((error) => {
    ending.abort(error)
    throw error
  })
  const tell = async () => out.say(`The build goes on: berth logs -f ${clean(made.id)}`)
  context.undo.add(tell)
  const done = await following
  context.undo.delete(tell)
  const code = ended(done, out)
  out.show(done, () => (done.state === 'READY' ? clean(done.url) : ''))
  const { id, pinned, state, current } = done
  if (!options.prod || state !== 'READY' || current || !pinned) return code
  out.say(`Production is pinned to ${clean(pinned)}. Run \`berth promote ${clean(id)}\` to switch.`)
  return exitCodes.pinned
}

async function readFolder({ out }: Context, directory: string): Promise<SourceFile[]> {
  const { paths, secrets } = await listFiles(directory)
  if (secrets.length > 0) {
    const named = `${clean(secrets.slice(0, 5).join(', '))}${secrets.length > 5 ? ' …' : ''}`
    out.say(`Not uploaded: ${named}. To send one, name it in .berthignore: !${clean(secrets[0])}`)
  }
  if (paths.length === 0) throw usage(`There are no files to deploy in ${directory}.`)
  return hashFiles(directory, paths, (done) => out.progress(`Reading ${done} of ${paths.length} files`))
}

async function create(
  context: Context,
  project: string,
  files: SourceFile[],
  { prod = false, prebuilt = false }: Options,
): Promise<Uploading> {
  const source = { files, ...(prebuilt && { prebuilt }) }
  // Ctrl-C does not end it: what is made without an answer cannot be cancelled.
  const { signal } = new AbortController()
  const body = { project, production: prod, source }
  const answer = await context.send('POST', '/api/deployments', { body, signal })
  return deploymentOf(answer)
}

/** Sends what the server does not have yet; from then on Ctrl-C does not cancel it. */
async function send(
  context: Context,
  directory: string,
  files: SourceFile[],
  made: Uploading,
  cancel: () => Promise<void>,
): Promise<void> {
  const missing = made.uploads?.missing ?? []
  try {
    const bytes = await upload(context, directory, files, missing)
    context.out.say(`Uploaded ${size(bytes)} in ${missing.length} of ${files.length} files.`)
  } catch (error) {
    if (!context.signal.aborted) await cancel()
    throw error
  } finally {
    if (!context.signal.aborted) context.undo.delete(cancel)
  }
}

async function follow(context: Context, { id }: Deployment): Promise<Deployment> {
  const { out } = context
  const told = (async () => {
    for await (const line of followLog(context, id)) {
      const text = cleanLog(line.text)
      out.say(line.stream === 'system' ? out.paint('grey', text) : text)
    }
  })().catch((error) => {
    // Others of the account read logs already, as many as may: it is built all the same.
    if (error.status !== 429) throw error
  })
  const [done] = await Promise.all([waitUntilBuilt(context, id), told])
  return done
}
