// The production branch of a project: its own, or the default branch of its repository, null while nobody has asked for it.
import type { Project } from './project-type.ts'

export const productionBranchOf = ({ settings, defaultBranch }: Project) => settings.productionBranch ?? defaultBranch
