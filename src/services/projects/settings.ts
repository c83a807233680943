// Settings of projects: what they are at first, what is refused, how they are shown, and from when on they count.
import { isDeepStrictEqual } from 'node:util'
import type { Static } from '@sinclair/typebox'
import type { Project } from '../../generated/client.ts'
import type { FieldError } from '../../platform/errors.ts'
import { badField, refuseFields, type Sound } from '../../platform/fields.ts'
import { isRefName } from '../../platform/git/repositories.ts'
import { type AddressRules, addressRefusal } from '../../platform/git/repository-address.ts'
import type { ChangeProjectSettings, ProjectSettings } from '../../schemas/project-settings.ts'
import type { ChangeProject, Project as ProjectSchema } from '../../schemas/projects.ts'
import { cronErrors, cronOfLine, lineOfCron } from './crons.ts'

export type Settings = Static<typeof ProjectSettings>

/** The columns of a project that are settings, as Prisma and statements read them. */
export type SettingsRow = Pick<
  Project,
  Exclude<keyof Settings, 'watchPaths' | 'crons'> | 'spaNever' | 'followsDefaultBranch'
> & {
  watchPaths: readonly string[]
  crons: readonly string[]
}

type Columns = Pick<Project, keyof SettingsRow>

/** What the production branch is until a project that follows the default branch has learned it. */
export const usualBranch = 'main'

/** As a caller sets them: without a production branch of its own, a project follows the default branch. */
type AllSettings = Omit<Settings, 'productionBranch'> & { productionBranch: string | null }

export const defaultSettings = {
  productionBranch: null,
  rootDirectory: null,
  installCommand: null,
  buildCommand: null,
  outputDirectory: null,
  spaFallback: null,
  cleanUrls: true,
  publishAnyway: false,
  autoDeploy: true,
  hsts: false,
  buildNetwork: 'public',
  serverNetwork: 'public',
  instances: 1,
  previewProtection: 'none',
  skewProtection: false,
  watchPaths: [],
  crons: [],
} satisfies AllSettings

export function viewSettings(row: SettingsRow): Settings {
  return {
    productionBranch: row.productionBranch,
    rootDirectory: row.rootDirectory,
    installCommand: row.installCommand,
    buildCommand: row.buildCommand,
    outputDirectory: row.outputDirectory,
    spaFallback: row.spaFallback || (row.spaNever ? false : null),
    cleanUrls: row.cleanUrls,
    publishAnyway: row.publishAnyway,
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

/** Settings as the columns that keep them; the password of previews has its own rules. */
export function columnsOf(settings: AllSettings): Omit<Columns, 'productionBranch'> & Partial<Columns>
export function columnsOf(settings: Static<typeof ChangeProjectSettings>): Partial<Columns>
export function columnsOf(settings: Static<typeof ChangeProjectSettings>): Partial<Columns> {
  const { previewPassword: _, crons, spaFallback, productionBranch, ...columns } = settings
  return {
    ...columns,
    ...(productionBranch !== undefined && { followsDefaultBranch: productionBranch === null }),
    ...(productionBranch != null && { productionBranch }),
    ...(crons && { crons: crons.map(lineOfCron) }),
    ...(spaFallback !== undefined && { spaFallback: spaFallback === true, spaNever: spaFallback === false }),
  }
}

type Changeable = keyof Settings | 'framework' | 'repo'
type AppliesTo = NonNullable<Static<typeof ProjectSchema>['changes']>[number]['appliesTo']

/** From when on each setting counts. What acts when a site is served reaches the edges with the event of the change. */
const appliesTo: Record<Changeable, AppliesTo> = {
  framework: 'next deployment',
  repo: 'next deployment',
  productionBranch: 'now',
  rootDirectory: 'next deployment',
  installCommand: 'next deployment',
  buildCommand: 'next deployment',
  outputDirectory: 'next deployment',
  spaFallback: 'now',
  cleanUrls: 'now',
  publishAnyway: 'next deployment',
  autoDeploy: 'now',
  hsts: 'now',
  buildNetwork: 'next deployment',
  serverNetwork: 'next start',
  instances: 'now',
  previewProtection: 'now',
  skewProtection: 'now',
  watchPaths: 'now',
  crons: 'now',
}

type Changed = Pick<Static<typeof ProjectSchema>, 'framework' | 'repo' | 'settings'>

/** What a change has changed, each with from when on it counts. */
export function changesBetween(before: Changed, after: Changed): NonNullable<Static<typeof ProjectSchema>['changes']> {
  const flat = ({ framework, repo, settings }: Changed): Record<Changeable, unknown> => ({
    framework,
    repo,
    ...settings,
  })
  const [was, is] = [flat(before), flat(after)]
  return (Object.keys(appliesTo) as Changeable[])
    .filter((name) => !isDeepStrictEqual(was[name], is[name]))
    .map((name) => ({
      field: name === 'framework' || name === 'repo' ? name : `settings.${name}`,
      appliesTo: appliesTo[name],
    }))
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
  if (branch != null && !isRefName(branch)) {
    errors.push(badField('#/settings/productionBranch', 'bad_format', 'must be a valid git branch name'))
  }
  refuseFields([...errors, ...cronErrors(settings?.crons ?? [])])
}
