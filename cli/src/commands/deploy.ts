// `berth deploy`: deploys a folder or a git ref, follows the build, and exits with its result.
import type { Action } from '../kit/action.ts'
import {
  createBuild,
  finishBuild,
  followBuild,
  onInterruptSayContinues,
  showResult,
  showStarted,
  startBuild,
} from '../kit/builds.ts'
import type { Context } from '../kit/context.ts'
import { usage } from '../kit/failures.ts'
import { hashFiles, listFiles, type SourceFile } from '../kit/files.ts'
import type { Uploading } from '../kit/messages.ts'
import { createProject, requireConsent } from '../kit/new-project.ts'
import { findProject, requireProject } from '../kit/project.ts'
import { clean, count, size } from '../kit/text.ts'
import { upload } from '../kit/uploads.ts'

type Options = { project?: string; prod?: boolean; prebuilt?: boolean; ref?: string; wait: boolean }

export const deploy: Action<Options> = async (context, [directory], options) => {
  if (options.ref !== undefined) return deployRef(context, options.ref, directory, options)
  return deployFolder(context, directory ?? '.', options)
}

async function deployRef(
  context: Context,
  ref: string,
  directory: string | undefined,
  { project: given, prod = false, prebuilt, wait }: Options,
): Promise<number> {
  if (directory !== undefined || prebuilt)
    throw usage("--ref deploys from the project's repository. Leave out the folder and --prebuilt.")
  const project = await requireProject(context, given)
  const created = await startBuild(context, '/api/deployments', { project, ref, production: prod })
  return finishBuild(context, created, wait)
}

async function deployFolder(context: Context, directory: string, options: Options): Promise<number> {
  const { out } = context
  const { prod = false, prebuilt = false, wait } = options
  const existing = await findProject(context, options.project, directory)
  if (existing === null) await requireConsent(context, directory)
  const files = await readFolder(context, directory)
  context.signal.throwIfAborted()
  const newProject = existing === null ? await createProject(context, directory) : null
  const project = existing ?? newProject!.name
  const source = { files, ...(prebuilt && { prebuilt }) }
  const creating = createBuild(context, '/api/deployments', { project, production: prod, source })
  // An incomplete deployment would wait for its files until it expires.
  const cancel = () =>
    creating.then(
      ({ id }) => context.cancel(id),
      () => {},
    )
  context.undo.add(cancel)
  const created = await creating.catch(async (error) => {
    if (!context.signal.aborted) await newProject?.remove()
    throw error
  })
  context.signal.throwIfAborted()
  await newProject?.link()
  if (!wait) {
    await send(context, directory, files, created, cancel)
    return showStarted(context, created)
  }
  out.say(`Building ${clean(created.id)}`)
  // Follows the log while files are still being uploaded.
  const uploadFailed = new AbortController()
  const following = followBuild({ ...context, signal: AbortSignal.any([context.signal, uploadFailed.signal]) }, created)
  following.catch(() => {})
  await send(context, directory, files, created, cancel).catch((error) => {
    uploadFailed.abort(error)
    throw error
  })
  const say = onInterruptSayContinues(context, created)
  const finished = await following
  context.undo.delete(say)
  return showResult(context, finished)
}

async function readFolder({ out }: Context, directory: string): Promise<SourceFile[]> {
  const { paths, secrets } = await listFiles(directory)
  if (secrets.length > 0) {
    const names = `${clean(secrets.slice(0, 5).join(', '))}${secrets.length > 5 ? ' …' : ''}`
    out.say(
      `Not uploaded because they may contain secrets: ${names}. To include a file, add !${clean(secrets[0])} to .berthignore.`,
    )
  }
  if (paths.length === 0) throw usage(`There are no files to deploy in ${directory}.`)
  return hashFiles(directory, paths, (done) => out.progress(`Reading ${done} of ${count(paths.length, 'file')}`))
}

/** Uploads what the server is missing; after that, Ctrl-C no longer cancels the deployment. */
async function send(
  context: Context,
  directory: string,
  files: SourceFile[],
  created: Uploading,
  cancel: () => Promise<void>,
): Promise<void> {
  const missing = created.uploads?.missing ?? []
  try {
    const bytes = await upload(context, directory, files, missing)
    context.out.say(
      missing.length === 0
        ? 'Nothing to upload: the server already has every file.'
        : `Uploaded ${missing.length} of ${count(files.length, 'file')} (${size(bytes)}).`,
    )
  } catch (error) {
    if (!context.signal.aborted) await cancel()
    throw error
  } finally {
    if (!context.signal.aborted) context.undo.delete(cancel)
  }
}
