// Variables of a project: sealed when they come in, opened for builds and servers, and for readers if they are readable.
import { hash } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import type { Variable } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import { type PutVariable, Variable as VariableSchema, type VariableValues } from '../../schemas/projects.ts'
import type { Actor } from '../identity/index.ts'
import { checkQuota } from '../quotas/index.ts'
import { findProject, findProjectToChange } from './projects.ts'

export type VariableView = Static<typeof VariableSchema>

const viewRow = viewOf(VariableSchema)

function view(vault: Vault, row: Variable): VariableView {
  const { projectId, key, readable, sealed } = row
  return viewRow(row, { value: readable ? vault.open(sealed, placeOf.variable(projectId, key)).toString() : null })
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

/** The value that production gets, opened; null if there is none. Called by the platform itself: there is no owner. */
export async function openProductionVariable(
  db: Db,
  vault: Vault,
  projectId: string,
  key: string,
): Promise<string | null> {
  const where = { projectId, key, target: { in: ['all', 'production'] } }
  // `all` is the first by name, so that the other one goes before it.
  const row = await db.variable.findFirst({ where, orderBy: { target: 'desc' } })
  return row && vault.open(row.sealed, placeOf.variable(projectId, key)).toString()
}

/** Every value of a variable is its version, also where it is sealed anew: it is read by nobody, and must not get lost. */
const versionOf = (rows: Variable[]) =>
  rows.length === 0
    ? null
    : rows.map(({ target, readable, updatedAt, sealed }) => [
        target,
        readable,
        updatedAt,
        hash('sha1', sealed, 'base64url'),
      ])

const valuesOf = (db: Db, projectId: string, key: string) =>
  db.variable.findMany({ where: { projectId, key }, orderBy: { target: 'asc' } })

const noVariable = (key: string, target?: string) =>
  new Fault('not_found', `The project has no variable ${key}${target ? ` for ${target}` : ''}.`)

export async function findVariable(
  db: Db,
  vault: Vault,
  actor: Actor,
  { projectKey, key }: { projectKey: string; key: string },
): Promise<{ variable: Static<typeof VariableValues>; version: unknown }> {
  const project = await findProject(db, actor, projectKey)
  const rows = await valuesOf(db, project.id, key)
  if (rows.length === 0) throw noVariable(key)
  return { variable: { key, values: rows.map((row) => view(vault, row)) }, version: versionOf(rows) }
}

type VariableChange = { projectKey: string; key: string; precondition(version: unknown): void }

/** Sets the value for one target; those for the others stay as they are. */
export async function putVariable(
  db: Db,
  vault: Vault,
  actor: Actor,
  { projectKey, key, input, precondition }: VariableChange & { input: Static<typeof PutVariable> },
): Promise<VariableView> {
  return inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, projectKey)
    precondition(versionOf(await valuesOf(db, project.id, key)))
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
  { projectKey, key, target, precondition }: VariableChange & { target: VariableView['target'] | undefined },
): Promise<void> {
  await inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, projectKey)
    const rows = await valuesOf(db, project.id, key)
    if (!rows.some((row) => target === undefined || row.target === target)) throw noVariable(key, target)
    precondition(versionOf(rows))
    await db.variable.deleteMany({ where: { projectId: project.id, key, target } })
  })
}
