// Settings of projects: what is refused, how they are stored and shown, and what a change has changed.
import { isDeepStrictEqual } from 'node:util'
import type { Static } from '@sinclair/typebox'
import { viewOf } from '../../platform/database/views.ts'
import type { FieldError } from '../../platform/errors.ts'
import { badField, refuseFields, type Sound } from '../../platform/fields.ts'
import { isRefName } from '../../platform/git/repositories.ts'
import { type AddressRules, addressRefusal } from '../../platform/git/repository-address.ts'
import {
  type ChangeProjectSettings,
  initialSettings,
  ProjectSettings,
  settingAppliesTo,
} from '../../schemas/project-settings.ts'
import type { ChangeProject, Project as ProjectSchema } from '../../schemas/projects.ts'
import { cronErrors, cronOfLine, lineOfCron } from './crons.ts'
import type { ProjectRow } from './statements.ts'

/** What the production branch is until a project that follows the default branch has learned it. */
export const usualBranch = 'main'

/** The columns of a new project, before its own settings. */
export const initialColumns = {
  ...initialSettings,
  productionBranch: usualBranch,
  followsDefaultBranch: true,
  spaFallback: false,
  spaNever: false,
  crons: [],
}

const settingsOf = viewOf(ProjectSettings)

export function viewSettings(row: ProjectRow): Static<typeof ProjectSettings> {
  return settingsOf(row, {
    spaFallback: row.spaFallback || (row.spaNever ? false : null),
    crons: row.crons.map(cronOfLine),
  })
}

/** Settings as the columns that keep them; the password of previews has its own rules. */
export function storedSettings(settings: Static<typeof ChangeProjectSettings>) {
  const { previewPassword: _, crons, spaFallback, productionBranch, ...columns } = settings
  return {
    ...columns,
    ...(productionBranch !== undefined && { followsDefaultBranch: productionBranch === null }),
    ...(productionBranch != null && { productionBranch }),
    ...(crons && { crons: crons.map(lineOfCron) }),
    ...(spaFallback !== undefined && { spaFallback: spaFallback === true, spaNever: spaFallback === false }),
  }
}

type Changed = Pick<Static<typeof ProjectSchema>, 'framework' | 'repo' | 'settings'>
type Applied = NonNullable<Static<typeof ProjectSchema>['changes']>

/** What a change has changed, each with from when on it counts. */
export function changesBetween(before: Changed, after: Changed): Applied {
  const built = (['framework', 'repo'] as const)
    .filter((field) => before[field] !== after[field])
    .map((field) => ({ field, appliesTo: 'next deployment' as const }))
  const names = Object.keys(settingAppliesTo) as (keyof typeof settingAppliesTo)[]
  const set = names
    .filter((name) => !isDeepStrictEqual(before.settings[name], after.settings[name]))
    .map((name) => ({ field: `settings.${name}`, appliesTo: settingAppliesTo[name] }))
  return [...built, ...set]
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
