// Every schema with a name: the components of openapi.yaml.
import { Account, Regions } from './account.ts'
import { FieldProblem, Problem } from './common.ts'
import { Deployment, DeploymentError, DeploymentStates, LogLine } from './deployments.ts'
import { AccountSummary, Event } from './events.ts'
import { Project, ProjectSettings, Variable } from './projects.ts'
import { Token, TokenWithSecret } from './tokens.ts'

export const schemas = [
  Token,
  TokenWithSecret,
  Event,
  AccountSummary,
  Account,
  Regions,
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
