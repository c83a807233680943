// Commands for projects: their settings, variables, deploy hooks and crons.
import { projectOption, type Tree } from '../kit/tree.ts'

export function declareProjects({ top, add, on }: Tree): void {
  on(
    top('link [project]', 'link this folder to a project').addOption(projectOption()),
    async () => (await import('../commands/link.ts')).link,
  )

  const projects = top('projects', 'projects of the account')
  on(add(projects, 'ls', 'list projects'), async () => (await import('../commands/projects.ts')).list)
  on(
    add(projects, 'create <name>', 'create a project')
      .option('--framework <name>', 'framework')
      .option('--repo <repository>', 'repository, owner/name'),
    async () => (await import('../commands/projects.ts')).create,
  )
  on(
    add(projects, 'rename <project> <name>', 'rename a project; the old name still works'),
    async () => (await import('../commands/projects.ts')).rename,
  )
  on(
    add(projects, 'rm <project>', 'delete a project with its deployments'),
    async () => (await import('../commands/projects.ts')).remove,
  )

  const settings = top('settings', 'settings of a project')
  on(
    add(settings, 'ls', 'show the settings', { isDefault: true }).addOption(projectOption()),
    async () => (await import('../commands/settings.ts')).list,
  )
  on(
    add(settings, 'set <key=value...>', 'change settings, such as cleanUrls=false').addOption(projectOption()),
    async () => (await import('../commands/settings.ts')).set,
  )
  on(
    add(settings, 'unset <key...>', 'return settings to their defaults').addOption(projectOption()),
    async () => (await import('../commands/settings.ts')).unset,
  )

  const env = top('env', 'variables of a project')
  on(add(env, 'ls', 'list variables').addOption(projectOption()), async () => (await import('../commands/env.ts')).list)
  on(
    add(env, 'set <key> [value]', 'set a variable; reads the value from stdin if omitted')
      .addOption(projectOption())
      .option('--target <target>', 'production, preview or all', 'all')
      .option('--secret', 'make it secret: nobody can read this or later values again')
      .option('--readable', 'make a secret variable readable'),
    async () => (await import('../commands/env.ts')).set,
  )
  on(
    add(env, 'rm <key>', 'delete a variable')
      .addOption(projectOption())
      .option('--target <target>', 'only the value for this target'),
    async () => (await import('../commands/env.ts')).remove,
  )
  on(
    add(env, 'pull [file]', 'write variables to a file, without the values of secrets (default: .env.local)')
      .addOption(projectOption())
      .option('--target <target>', 'production or preview', 'preview'),
    async () => (await import('../commands/env.ts')).pull,
  )

  const hooks = top('hooks', 'deploy hooks: URLs that start deployments')
  on(
    add(hooks, 'ls', 'list deploy hooks').addOption(projectOption()),
    async () => (await import('../commands/hooks.ts')).list,
  )
  on(
    add(hooks, 'add <name>', 'create a deploy hook; its URL is shown once')
      .addOption(projectOption())
      .option('--ref <ref>', 'branch, tag or commit (default: the production branch)'),
    async () => (await import('../commands/hooks.ts')).add,
  )
  on(
    add(hooks, 'rm <id>', 'delete a deploy hook').addOption(projectOption()),
    async () => (await import('../commands/hooks.ts')).remove,
  )
  const crons = top('crons', 'paths that are called on a schedule')
  on(
    add(crons, 'ls', 'list crons with their next and last run').addOption(projectOption()),
    async () => (await import('../commands/hooks.ts')).crons,
  )
}
