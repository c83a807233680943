// Settings of projects: what they are at first, what is refused, and how they are shown.
import type { Static } from '@sinclair/typebox'
import type { Project } from '../../generated/client.ts'
import type { FieldError } from '../../platform/errors.ts'
import { badField, refuseFields, type Sound } from '../../platform/fields.ts'
import { isRefName } from '../../platform/repositories.ts'
import { type AddressRules, addressRefusal } from '../../platform/repository-address.ts'
import type { ProjectSettings } from '../../schemas/project-settings.ts'
import type { ChangeProject } from '../../schemas/projects.ts'
import { cronErrors, cronOfLine } from '../crons/settings.ts'

export type Settings = Static<typeof ProjectSettings>

/** The columns of a project that are settings, as Prisma and statements read them. */
export type SettingsRow = Pick<Project, Exclude<keyof Settings, 'watchPaths' | 'crons'>> & {
  watchPaths: readonly string[]
  crons: readonly string[]
}

export const defaultSettings = {
  productionBranch: 'main',
  rootDirectory: null,
  installCommand: null,
  buildCommand: null,
  outputDirectory: null,
  spaFallback: false,
  cleanUrls: true,
  autoDeploy: true,
  hsts: false,
  buildNetwork: 'public',
  serverNetwork: 'public',
  instances: 1,
  previewProtection: 'none',
  skewProtection: false,
  watchPaths: [],
  crons: [],
} satisfies Settings

export function viewSettings(row: SettingsRow): Settings {
  return {
    productionBranch: row.productionBranch,
    rootDirectory: row.rootDirectory,
    installCommand: row.installCommand,
    buildCommand: row.buildCommand,
    outputDirectory: row.outputDirectory,
    spaFallback: row.spaFallback,
    cleanUrls: row.cleanUrls,
    autoDeploy: row.autoDeploy,
    hsts: row.hsts,
    buildNetwork: row.buildNetwork as Settings['buildNetwork'],
    serverNetwork: row.serverNetwork as Settings['serverNetwork'],
    instances: row.instances,
    previewProtection: row.previewProtection as Settings['previewProtection'],
    skewProtection: row.skewProtection,
    watchPaths: [...row.watchPaths],
    crons: row.crons.map(cronOfLine),
  }
}

/** What a schema cannot say of a project. Without rules, those of an installation that is open to everybody. */
export function checkSettings(
  { settings, repo }: Sound<Static<typeof ChangeProject>>,
  rules: AddressRules = { production: true, webhookAllowPrivate: false },
): void {
  const errors: FieldError[] = []
  const refusal = repo === undefined ? null : addressRefusal(repo, rules)
  if (refusal) errors.push(badField('#/repo', 'bad_url', refusal))
  const branch = settings?.productionBranch
  if (branch !== undefined && !isRefName(branch)) {
    errors.push(badField('#/settings/productionBranch', 'bad_format', 'must be a branch name that git allows'))
  }
  refuseFields([...errors, ...cronErrors(settings?.crons ?? [])])
}
