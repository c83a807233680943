// `berth deploy`: uploads what changed of a folder, follows the build, and ends with its result.
import type { Deployment } from '../../../sdk/src/types.ts'
import type { Context } from '../kit/context.ts'
import { exitCodes, usage } from '../kit/failures.ts'
import { hashFiles, listFiles } from '../kit/files.ts'
import { clean, cleanLog, size } from '../kit/text.ts'
import { upload } from '../kit/uploads.ts'
import type { Action } from '../program.ts'
import { ended } from './deployments.ts'
import { requireProject } from './link.ts'

type Options = { project?: string; prod?: boolean; prebuilt?: boolean; wait: boolean }
type Uploading = Deployment & { uploads?: { missing: string[] } }

export const deploy: Action<Options> = async (context, [directory = '.'], options) => {
  const { out } = context
  const project = await requireProject(context, options.project, directory)
  const begun = await begin(context, directory, project, options)
  if (!options.wait) {
    out.show(begun, () => clean(begun.url))
    return exitCodes.ok
  }
  const done = await follow(context, begun)
  out.show(done, () => (done.state === 'READY' ? clean(done.url) : ''))
  return ended(done, out)
}

/** Makes the deployment and sends what the server does not have yet. */
async function begin(context: Context, directory: string, project: string, options: Options): Promise<Deployment> {
  const { out } = context
  const paths = await listFiles(directory)
  if (paths.length === 0) throw usage(`There are no files to deploy in ${directory}.`)
  const files = await hashFiles(directory, paths, (done) => out.progress(`Reading ${done} of ${paths.length} files`))
  const { prod = false, prebuilt = false } = options
  const source = { files, ...(prebuilt && { prebuilt }) }
  const answer = await context.send('POST', '/api/deployments', { body: { project, production: prod, source } })
  const made = (await answer.json()) as Uploading
  const missing = made.uploads?.missing ?? []
  // Half a folder would wait for the rest until it is given up.
  const cancel = () => context.cancel(made.id)
  context.undo.add(cancel)
  try {
    const bytes = await upload(context, directory, files, missing)
    out.say(`Uploaded ${size(bytes)} in ${missing.length} of ${files.length} files.`)
  } catch (error) {
    if (!context.signal.aborted) await cancel()
    throw error
  } finally {
    if (!context.signal.aborted) context.undo.delete(cancel)
  }
  return made
}

async function follow(context: Context, { id }: Deployment): Promise<Deployment> {
  const { out, signal } = context
  const berth = await context.berth()
  out.say(`Building ${clean(id)}`)
  const tell = async () => out.say(`The build goes on: berth logs -f ${clean(id)}`)
  context.undo.add(tell)
  for await (const line of berth.logs(id, { signal })) {
    const text = cleanLog(line.text)
    out.say(line.stream === 'system' ? out.paint('grey', text) : text)
  }
  context.undo.delete(tell)
  return berth.get('/deployments/{id}', { params: { path: { id } } })
}
