// The project as the parts of its screen take it.
import type { Schemas } from '../kit/index.ts'

export type Project = Schemas['Project']
