// `berth open`: the address of production or of a deployment, in the browser where there is one.
import { spawn } from 'node:child_process'
import type { Action } from '../kit/action.ts'
import { exitCodes, Failure } from '../kit/failures.ts'
import { clean } from '../kit/text.ts'
import { requireProject } from './link.ts'

export const open: Action<{ project?: string }> = async (context, [id], options) => {
  const berth = await context.berth()
  const url = id
    ? (await berth.get('/deployments/{id}', { params: { path: { id } } })).url
    : (
        await berth.get('/projects/{project}', {
          params: { path: { project: await requireProject(context, options.project) } },
        })
      ).productionUrl
  context.out.show({ url }, () => clean(url))
  if (process.stdout.isTTY) openInBrowser(url)
}

/** Only an address of the web: whatever else comes from a server might be a program for the desktop. */
export function openInBrowser(address: string): void {
  const { protocol, href } = new URL(address)
  if (protocol !== 'https:' && protocol !== 'http:')
    throw new Failure(exitCodes.failed, 'The address is not one of the web.')
  const [program, ...before] =
    process.platform === 'darwin'
      ? ['open']
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler']
        : ['xdg-open']
  const child = spawn(program!, [...before, href], { stdio: 'ignore', detached: true })
  // A machine without a browser: the address was printed.
  child.on('error', () => {})
  child.unref()
}
