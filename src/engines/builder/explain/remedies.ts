// Suggests remedies for failed commands by what they printed, with secrets masked.
import { type NetworkAccess, reasonFor, unreachable } from './unreachable.ts'

const outOfSync = (lockfile: string, command: string) =>
  `${lockfile} is out of sync with package.json: run ${command} and commit the lockfile.`

// npm also prints such codes in warnings, so these match only its own errors.
const remedies: readonly [printed: RegExp, remedy: string | typeof reasonFor][] = [
  [/ERR_PNPM_(OUTDATED_LOCKFILE|LOCKFILE_CONFIG_MISMATCH)/, outOfSync('pnpm-lock.yaml', 'pnpm install')],
  [
    /ERR_PNPM_(LOCKFILE_BREAKING_CHANGE|BROKEN_LOCKFILE)|pnpm-lock\.yaml is not compatible/,
    'pnpm-lock.yaml was written by another version of pnpm: set packageManager in package.json to your version.',
  ],
  [/Your lockfile needs to be updated|YN0028/, outOfSync('yarn.lock', 'yarn install')],
  [/lockfile had changes, but lockfile is frozen/, outOfSync('bun.lock', 'bun install')],
  [/`npm ci` can only install packages when your package\.json/, outOfSync('package-lock.json', 'npm install')],
  [/npm (error|ERR!) code EJSONPARSE|ERR_PNPM_JSON_PARSE/, 'A package.json is not valid JSON: fix it and commit it.'],
  [
    /npm (error|ERR!) code ERESOLVE/,
    'Packages need conflicting versions of each other: change them in package.json, or set installCommand to npm install --legacy-peer-deps.',
  ],
  [
    /npm (error|ERR!) code EINTEGRITY|ERR_PNPM_TARBALL_INTEGRITY/,
    'A package does not match the lockfile: regenerate the lockfile and commit it.',
  ],
  [
    /npm (error|ERR!) code (E404|ETARGET)|ERR_PNPM_(FETCH_404|NO_MATCHING_VERSION)|YN0035|Couldn't find (any versions for|package) /,
    'A package or the requested version is not in the registry: the log names it.',
  ],
  [
    /npm (error|ERR!) code EBADENGINE|ERR_PNPM_UNSUPPORTED_ENGINE|The engine "node" is incompatible|(requires?|needs?|supports?|upgrade to) (a |at least |minimum )?Node(\.?js)? (version|v?>?=?\s?\d)|Node(\.?js)? v?[\d.]+ is not supported|You are using Node\.js/i,
    'It needs another version of Node.js: set it in .nvmrc, or in engines of package.json.',
  ],
  [
    /JavaScript heap out of memory/,
    'Node.js ran out of memory: set the variable NODE_OPTIONS to --max-old-space-size=1536, or build less at once.',
  ],
  [
    /\bsh: \d+: .{1,200}: not found|: command not found/,
    'A program is not installed: add its package to package.json. If the variable NODE_ENV is production, devDependencies are not installed.',
  ],
  [
    /Cannot find native binding|npm has a bug related to optional dependencies|Cannot find module '[^']{1,200}[-.]linux-(x64|arm64)/,
    'A package’s binary for this system is not installed: delete node_modules and the lockfile, reinstall, and commit the new lockfile. If that does not help, the registry lacks that version: the log names it.',
  ],
  [
    /Cannot find (module|package) '[^.'/]/,
    'A module is not installed: add its package to package.json. If the variable NODE_ENV is production, devDependencies are not installed.',
  ],
  // Last, because programs also print connection errors that they survive.
  [unreachable, reasonFor],
]

/** How much of the end of the output is searched. */
export const maxSearched = 32_768

/** Null if no remedy is known. */
export function remedyFor(printed: string, access: NetworkAccess): string | null {
  const remedy = remedies.find(([pattern]) => pattern.test(printed))?.[1] ?? null
  return typeof remedy === 'function' ? remedy(printed, access) : remedy
}
