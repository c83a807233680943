// package.json as untrusted input: only what has its proper type, and is not too long, is taken over.

export type PackageManifest = {
  /** It is there, but no JSON object. */
  unreadable: boolean
  scripts: ReadonlyMap<string, string>
  /** Those of every kind that is installed, with the ranges. */
  dependencies: ReadonlyMap<string, string>
  main: string | null
  packageManager: string | null
  /** `engines.node`. */
  node: string | null
  workspaces: boolean
  /** Patterns of the folders that belong to the workspace; null if they are not listed here. */
  members: string[] | null
}

export const longestManifest = 1 << 20
const mostEntries = 5_000
// Nested ones take 0.4 µs each to parse, in one go; package-lock.json of 4 MiB has about 30,000.
const mostParts = 50_000
const longestText = 4_000
const longestScript = 65_536

const objectOf = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

const textOf = (value: unknown, most = longestText): string | null =>
  typeof value === 'string' && value.length > 0 && value.length <= most ? value : null

/** An own property: `constructor` of a package.json that has none is null, not a function. */
export const ownOf = (object: unknown, name: string): unknown =>
  Object.getOwnPropertyDescriptor(objectOf(object), name)?.value

function texts(value: unknown, most = longestText): [string, string][] {
  return Object.entries(objectOf(value))
    .slice(0, mostEntries)
    .filter((entry): entry is [string, string] => textOf(entry[1], most) !== null)
}

const listOf = (value: unknown): string[] | null =>
  Array.isArray(value) ? value.slice(0, mostEntries).filter((one) => textOf(one, 200) !== null) : null

/** Those in texts are counted too: nobody has as many. */
function hasTooMany(text: string): boolean {
  let count = 0
  for (const open of ['[', '{']) {
    for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, at + 1)) if (++count > mostParts) return true
  }
  return false
}

/** Null for anything but a JSON object, and for one of more lists and objects than a large lockfile has. */
export function parseObject(text: string): Record<string, unknown> | null {
  if (hasTooMany(text)) return null
  try {
    const parsed: unknown = JSON.parse(text)
    return parsed !== null && typeof parsed === 'object' && !Array.isArray(parsed)
      ? (parsed as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

/** Without a package.json, and for one that cannot be read, everything is empty. */
export function readManifest(text: string | null): PackageManifest {
  const found = text === null ? null : parseObject(text)
  const kinds = ['optionalDependencies', 'devDependencies', 'dependencies']
  return {
    unreadable: text !== null && found === null,
    scripts: new Map(texts(ownOf(found, 'scripts'), longestScript)),
    dependencies: new Map(kinds.flatMap((kind) => texts(ownOf(found, kind)))),
    main: textOf(ownOf(found, 'main'), 200),
    packageManager: textOf(ownOf(found, 'packageManager'), 300),
    node: textOf(ownOf(ownOf(found, 'engines'), 'node'), 200),
    workspaces: ownOf(found, 'workspaces') != null,
    members: listOf(ownOf(found, 'workspaces')) ?? listOf(ownOf(ownOf(found, 'workspaces'), 'packages')),
  }
}
