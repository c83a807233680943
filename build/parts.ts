// Builds the changed parts of Berth. Each build goes into a directory named after the hash of its sources, which gets its
// name when the build is complete. So builds need no lock and are never incomplete:
//
//     dist/builds/server-<hash>/     dist/src        links to its src/
//     dist/builds/console-<hash>/    dist/dashboard  links to it
//     dist/builds/cli-<hash>/        dist/cli        links to it
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { chmod, lstat, mkdir, mkdtemp, readdir, rename, rm, symlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'

type Part = {
  /** The sources of a build, in addition to the packages and the builder itself. */
  sources: readonly string[]
  /** The link in dist/ to the current build, and the folder of the build it points to. */
  link: string
  linked: string
  build(root: string, to: string): Promise<void>
}

const parts = {
  server: {
    sources: ['src', 'prisma/migrate.ts', 'package.json', 'tsconfig.json'],
    link: 'src',
    linked: 'src',
    build: async (root, to) => (await import('./server.ts')).buildServer(root, to),
  },
  console: {
    sources: ['dashboard', 'sdk/src'],
    link: 'dashboard',
    linked: '',
    build: async (_root, to) => (await import('../dashboard/build.ts')).buildConsole(to),
  },
  cli: {
    sources: ['cli/src', 'cli/build.ts', 'cli/package.json', 'sdk/src'],
    link: 'cli',
    linked: '',
    build: async (_root, to) => (await import('../cli/build.ts')).buildCli(join(to, 'berth.mjs')),
  },
} satisfies Record<string, Part>

export type PartName = keyof typeof parts
export const partNames = Object.keys(parts) as PartName[]

export type BuildOptions = {
  root?: string
  /** Called once, if there is something to build. */
  onBuild?(): void
  /** For tests: instead of the real builders. */
  builders?: Partial<Record<PartName, Part['build']>>
}

/** Builds the parts that don't exist yet, and links to the current builds; returns their directories. */
export async function buildParts<Name extends PartName>(
  names: readonly Name[],
  { root = join(import.meta.dirname, '..'), onBuild, builders = {} }: BuildOptions = {},
): Promise<Record<Name, string>> {
  const builds = join(root, 'dist/builds')
  const wanted = names.map((name) => {
    const hash = hashOf(root, parts[name])
    return { name, hash, directory: join(builds, `${name}-${hash}`) }
  })
  const missing = wanted.filter(({ directory }) => !existsSync(directory))
  if (missing.length > 0) {
    onBuild?.()
    await mkdir(builds, { recursive: true })
    const isCurrent = ({ name, hash }: (typeof wanted)[0]) => hashOf(root, parts[name]) === hash
    const built = await Promise.all(
      missing.map(async (one) => {
        const build = builders[one.name] ?? parts[one.name].build
        return buildInto(builds, one.directory, (draft) => build(root, draft).then(() => isCurrent(one)))
      }),
    )
    // Someone edited a source during the build.
    if (built.includes(false)) return buildParts(names, { root, builders })
  }
  for (const { name, directory } of wanted) await makeCurrent(root, parts[name], directory)
  if (missing.length > 0) await removeOld(root, builds)
  return Object.fromEntries(wanted.map(({ name, directory }) => [name, directory])) as Record<Name, string>
}

/** `build` returns whether its sources stayed unchanged; otherwise the hash would be wrong. */
async function buildInto(
  builds: string,
  directory: string,
  build: (draft: string) => Promise<boolean>,
): Promise<boolean> {
  const draft = await mkdtemp(join(builds, 'draft-'))
  try {
    if (!(await build(draft))) return false
    // Images are built by root but run by another user.
    await chmod(draft, 0o755)
    // Another process may have finished the same build.
    await rename(draft, directory).catch((error) => {
      if (!existsSync(directory)) throw error
    })
    return true
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/** Hashes contents, because checkouts and copies change file times. */
function hashOf(root: string, { sources }: Part): string {
  const hash = createHash('sha256')
  const add = (path: string) => {
    // The length separates a file's content from the next file's name.
    const content = readFileSync(join(root, path))
    hash.update(`${path}\0${content.length}\0`).update(content)
  }
  for (const path of [...sources, 'build']) {
    const full = join(root, path)
    if (/\.\w+$/.test(path)) add(path)
    else {
      const entries = readdirSync(full, { recursive: true, withFileTypes: true })
      const files = entries
        .filter((entry) => !entry.isDirectory())
        .map(({ parentPath, name }) => join(parentPath, name))
      for (const file of files.sort()) add(file.slice(root.length + 1))
    }
  }
  // The packages that npm installed; other installers have no such file.
  const installed = 'node_modules/.package-lock.json'
  add(existsSync(join(root, installed)) ? installed : 'package-lock.json')
  return hash.digest('hex').slice(0, 16)
}

async function makeCurrent(root: string, { link, linked }: Part, directory: string): Promise<void> {
  const path = join(root, 'dist', link)
  const target = join(directory, linked).slice(join(root, 'dist/').length)
  if (targetOf(path) === target) return
  // Older versions compiled to this path, and `npm run dev` still does.
  if ((await lstat(path).catch(() => null))?.isDirectory()) await rm(path, { recursive: true, force: true })
  const draft = await mkdtemp(join(root, 'dist/builds/draft-'))
  await symlink(target, join(draft, 'link'), 'junction')
  await rename(join(draft, 'link'), path)
  await rm(draft, { recursive: true, force: true })
  // removeOld keeps a replaced build for a day from now.
  const now = new Date()
  await utimes(directory, now, now)
}

function targetOf(path: string): string | null {
  try {
    return readlinkSync(path)
  } catch {
    return null
  }
}

const dayMs = 86_400_000
const maxOld = 5

/** A running server may still load chunks of an old build, so the last ones stay for a day. */
async function removeOld(root: string, builds: string): Promise<void> {
  const current = Object.values(parts).map(({ link }) => targetOf(join(root, 'dist', link)))
  const others = (await readdir(builds)).filter((name) => !current.some((target) => target?.includes(name)))
  const dated = await Promise.all(
    others.map(async (name) => {
      const stats = await lstat(join(builds, name)).catch(() => null)
      return { name, part: name.replace(/-.*/, ''), mtimeMs: stats?.mtimeMs ?? 0 }
    }),
  )
  dated.sort((one, other) => other.mtimeMs - one.mtimeMs)
  for (const [index, { name, part, mtimeMs }] of dated.entries()) {
    const newer = dated.slice(0, index).filter((one) => one.part === part).length
    // Another process may be working on a draft.
    const isTooMany = newer >= maxOld && part !== 'draft'
    if (isTooMany || mtimeMs < Date.now() - dayMs) await rm(join(builds, name), { recursive: true, force: true })
  }
  // Left by older versions, which compiled file by file. This package.json could be taken for the checkout's.
  for (const name of ['package.json', 'prisma']) await rm(join(root, 'dist', name), { recursive: true, force: true })
}
