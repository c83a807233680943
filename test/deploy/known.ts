// What exists: the roles, and the settings that are read.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { variableNames } from '../../src/config.ts'
import { roles as existing } from '../../src/roles/run.ts'
import { root } from '../image/compose.ts'

export const roles: string[] = [...existing].sort()
/** The roles that run commands of customers. */
export const sandboxed = ['runner', 'worker']

const known = new Set(variableNames)

export const unknownOf = (names: Iterable<string>, more: readonly string[] = []) =>
  [...names].filter((name) => !known.has(name) && !more.includes(name))

export const read = (path: string) => readFileSync(join(root, path), 'utf8')
