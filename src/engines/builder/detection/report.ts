// Reports what was detected, in the log and for the API, and fails early if a program is missing.
import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Config } from '../../../config.ts'
import type { DeploymentView } from '../../../services/deployments/index.ts'
import { BuildFailure } from '../explain/failure.ts'
import type { BuildLog } from '../explain/log.ts'
import { describeManager } from '../project/manager.ts'
import type { Detected } from '../project/types.ts'
import type { Detection } from './detect.ts'
import type { Recipe } from './recipe.ts'

export function logDetected(log: Pick<BuildLog, 'system' | 'warn'>, { detected, title, warnings }: Detection): void {
  log.system(`Detected ${title} (${detected.kind}): ${detected.because.join(' ')}`.replace(/: $/, ''))
  for (const warning of warnings) log.warn(warning)
}

/** The detection as the API shows it. */
export function viewDetected({ packageManager, startCommand, ...rest }: Detected): {
  startCommand: string | null
  detected: NonNullable<DeploymentView['detected']>
} {
  const manager = packageManager && describeManager(packageManager)
  return { startCommand, detected: { ...rest, packageManager: manager, startCommand } }
}

/** Builds only see programs below /usr. */
export async function checkTool(
  { tool, title, build }: Recipe,
  { searchPath }: Pick<Config, 'searchPath'>,
): Promise<void> {
  if (tool === null) return
  const folders = searchPath.split(delimiter).filter((place) => place.startsWith('/usr/') || place === '/bin')
  const found = await Promise.all(
    folders.map((place) =>
      access(join(place, tool)).then(
        () => true,
        () => false,
      ),
    ),
  )
  if (found.includes(true)) return
  const cure = 'Ask the operator to install it, or build the site elsewhere and publish its files.'
  throw new BuildFailure(
    'build_tool_missing',
    `${title} is built by ${build}, but ${tool} is not installed on this platform. ${cure}`,
  )
}
