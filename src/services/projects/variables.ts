// Variables of a project: sealed when they come in, opened for builds and servers, and for readers if they are readable.
import type { Static } from '@sinclair/typebox'
import type { Variable } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database.ts'
import { Fault } from '../../platform/errors.ts'
import { placeOf, type Vault } from '../../platform/secrets.ts'
import type { PutVariable, Variable as VariableSchema } from '../../schemas/projects.ts'
import { checkQuota } from '../accounts/quotas.ts'
import type { Actor } from '../tokens/actor.ts'
import { findProject, findProjectToChange } from './projects.ts'

export type VariableView = Static<typeof VariableSchema>

function view(vault: Vault, row: Variable): VariableView {
  const { projectId, key, readable } = row
  return {
    key,
    target: row.target as VariableView['target'],
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    readable,
    value: readable ? vault.open(row.sealed, placeOf.variable(projectId, key)).toString() : null,
  }
}

/** By key, and for each of its targets. */
export async function listVariables(db: Db, vault: Vault, actor: Actor, projectKey: string): Promise<VariableView[]> {
  const project = await findProject(db, actor, projectKey)
  const found = await db.variable.findMany({
    where: { projectId: project.id },
    orderBy: [{ key: 'asc' }, { target: 'asc' }],
  })
  return found.map((row) => view(vault, row))
}

/** Sets the value for one target; those for the others stay as they are. */
export async function putVariable(
  db: Db,
  vault: Vault,
  actor: Actor,
  { projectKey, key, input }: { projectKey: string; key: string; input: Static<typeof PutVariable> },
): Promise<VariableView> {
  return inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, projectKey)
    const place = { projectId: project.id, key, target: input.target ?? 'all' }
    const others = await db.variable.count({ where: { projectId: project.id, NOT: place } })
    await checkQuota(db, actor.accountId, 'variables', others)
    const data = {
      readable: input.readable ?? false,
      sealed: Uint8Array.from(vault.seal(input.value, placeOf.variable(project.id, key))),
      updatedAt: new Date(),
    }
    const row = await db.variable.upsert({
      where: { projectId_key_target: place },
      create: { ...place, createdAt: data.updatedAt, ...data },
      update: data,
    })
    return view(vault, row)
  })
}

/** Without a target, for all of them. */
export async function deleteVariable(
  db: Db,
  actor: Actor,
  projectKey: string,
  { key, target }: { key: string; target: VariableView['target'] | undefined },
): Promise<void> {
  const project = await findProject(db, actor, projectKey)
  const { count } = await db.variable.deleteMany({ where: { projectId: project.id, key, target } })
  if (count > 0) return
  throw new Fault('not_found', `The project has no variable ${key}${target ? ` for ${target}` : ''}.`)
}
