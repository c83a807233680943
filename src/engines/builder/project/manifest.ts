// Reads package.json as untrusted input: only values of the right type and length are used.
import { parseJson } from '../../../platform/http/json-pieces.ts'

export type PackageManifest = {
  /** The file exists but isn't a JSON object. */
  unreadable: boolean
  scripts: ReadonlyMap<string, string>
  /** Dependencies of every installed kind, with their ranges. */
  dependencies: ReadonlyMap<string, string>
  main: string | null
  packageManager: string | null
  /** `engines.node`. */
  node: string | null
  workspaces: boolean
  /** Patterns of the workspace's folders; null if they aren't listed here. */
  members: string[] | null
}

export const maxManifestLength = 1 << 20
const maxEntries = 5_000
const maxTextLength = 4_000
const maxScriptLength = 65_536

const objectOf = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

const textOf = (value: unknown, maxLength = maxTextLength): string | null =>
  typeof value === 'string' && value.length > 0 && value.length <= maxLength ? value : null

/** Reads only own properties, so that `constructor` isn't a function. */
export const ownOf = (object: unknown, name: string): unknown =>
  Object.getOwnPropertyDescriptor(objectOf(object), name)?.value

function texts(value: unknown, most = maxTextLength): [string, string][] {
  return Object.entries(objectOf(value))
    .slice(0, maxEntries)
    .filter((entry): entry is [string, string] => textOf(entry[1], most) !== null)
}

const listOf = (value: unknown): string[] | null =>
  Array.isArray(value) ? value.slice(0, maxEntries).filter((one) => textOf(one, 200) !== null) : null

/** Null for anything but a JSON object, and for objects more complex than a large lockfile. */
export async function readObject(text: string | null): Promise<Record<string, unknown> | null> {
  if (text === null) return null
  try {
    const parsed = await parseJson(Buffer.from(text))
    return parsed !== null && typeof parsed === 'object' && !Array.isArray(parsed)
      ? (parsed as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

/** Everything is empty if package.json is missing or unreadable. */
export async function readManifest(text: string | null): Promise<PackageManifest> {
  const found = await readObject(text)
  const kinds = ['optionalDependencies', 'devDependencies', 'dependencies']
  return {
    unreadable: text !== null && found === null,
    scripts: new Map(texts(ownOf(found, 'scripts'), maxScriptLength)),
    dependencies: new Map(kinds.flatMap((kind) => texts(ownOf(found, kind)))),
    main: textOf(ownOf(found, 'main'), 200),
    packageManager: textOf(ownOf(found, 'packageManager'), 300),
    node: textOf(ownOf(ownOf(found, 'engines'), 'node'), 200),
    workspaces: ownOf(found, 'workspaces') != null,
    members: listOf(ownOf(found, 'workspaces')) ?? listOf(ownOf(ownOf(found, 'workspaces'), 'packages')),
  }
}
