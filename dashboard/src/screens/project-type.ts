// The type of a project, shared by the parts of its screen.
import type { Schemas } from '../kit/index.ts'

export type Project = Schemas['Project']
