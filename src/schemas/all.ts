// Every schema with a name: the components of openapi.yaml.
import { FieldProblem, Problem } from './common.ts'
import { Deployment, DeploymentError, DeploymentStates, LogLine } from './deployments.ts'
import { Project, ProjectSettings, Variable } from './projects.ts'

export const schemas = [
  Project,
  ProjectSettings,
  Variable,
  Deployment,
  DeploymentError,
  DeploymentStates,
  LogLine,
  Problem,
  FieldProblem,
]
