// `berth open`: opens production or a deployment in the browser.
import { spawn } from 'node:child_process'
import type { Action } from '../kit/action.ts'
import { findDeployment } from '../kit/deployments.ts'
import { exitCodes, Failure } from '../kit/failures.ts'
import { requireProject } from '../kit/project.ts'
import { fromServer } from '../kit/shape.ts'
import { clean } from '../kit/text.ts'

export const open: Action<{ project?: string }> = async (context, [id], options) => {
  const berth = await context.berth()
  const url = id
    ? (await findDeployment(context, id, options.project)).url
    : (
        await berth.get('/projects/{project}', {
          params: { path: { project: await requireProject(context, options.project) } },
        })
      ).productionUrl
  context.out.show({ url }, () => clean(url))
  if (process.stdout.isTTY) openInBrowser(url)
}

/** Only http and https: other URLs from a server could start a program. */
export function openInBrowser(text: string): void {
  const { protocol, href } = fromServer(() => new URL(text))
  if (protocol !== 'https:' && protocol !== 'http:')
    throw new Failure(exitCodes.failed, 'The URL must start with https:// or http://.')
  const [program, ...args] =
    process.platform === 'darwin'
      ? ['open']
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler']
        : ['xdg-open']
  const child = spawn(program!, [...args, href], { stdio: 'ignore', detached: true })
  // Without a browser, the printed URL must do.
  child.on('error', () => {})
  child.unref()
}
