// Builds the parts of Berth whose sources changed. Each build is in a directory that is named after a hash of everything it
// was made from, and gets its name when it is complete, so that there is nothing to lock and no half of a build:
//
//     dist/builds/server-<hash>/     dist/src        links to its src/
//     dist/builds/console-<hash>/    dist/dashboard  links to it
//     dist/builds/cli-<hash>/        dist/cli        links to it
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { chmod, lstat, mkdir, mkdtemp, readdir, rename, rm, symlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'

type Part = {
  /** Files and directories that a build is made from, besides the packages and the builder itself. */
  sources: readonly string[]
  /** The place in dist/ that leads to the current build, and what of the build is there. */
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

/** Makes the builds of these parts current, building those that don't exist; returns their directories. */
export async function buildParts<Name extends PartName>(
  names: readonly Name[],
  { root = join(import.meta.dirname, '..'), onBuild, builders = {} }: BuildOptions = {},
): Promise<Record<Name, string>> {
  const builds = join(root, 'dist/builds')
  const found = names.map((name) => {
    const hash = hashOf(root, parts[name])
    return { name, hash, directory: join(builds, `${name}-${hash}`) }
  })
  const missing = found.filter(({ directory }) => !existsSync(directory))
  if (missing.length > 0) {
    onBuild?.()
    await mkdir(builds, { recursive: true })
    const isCurrent = ({ name, hash }: (typeof found)[0]) => hashOf(root, parts[name]) === hash
    const built = await Promise.all(
      missing.map(async (one) => {
        const build = builders[one.name] ?? parts[one.name].build
        return buildInto(builds, one.directory, (draft) => build(root, draft).then(() => isCurrent(one)))
      }),
    )
    // Someone edited a source meanwhile.
    if (built.includes(false)) return buildParts(names, { root, builders })
  }
  for (const { name, directory } of found) await makeCurrent(root, parts[name], directory)
  if (missing.length > 0) await removeOld(root, builds)
  return Object.fromEntries(found.map(({ name, directory }) => [name, directory])) as Record<Name, string>
}

/** `build` returns whether its sources stayed as they were; otherwise nobody knows what the build was made from. */
async function buildInto(
  builds: string,
  directory: string,
  build: (draft: string) => Promise<boolean>,
): Promise<boolean> {
  const draft = await mkdtemp(join(builds, 'draft-'))
  try {
    if (!(await build(draft))) return false
    // An image is built by root, and run by someone else.
    await chmod(draft, 0o755)
    // Another process may have built the same at the same time.
    await rename(draft, directory).catch((error) => {
      if (!existsSync(directory)) throw error
    })
    return true
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/** By content: neither a checkout nor a copy keeps times. */
function hashOf(root: string, { sources }: Part): string {
  const hash = createHash('sha256')
  const add = (path: string) => {
    // The length keeps one file's end apart from the next one's name.
    const content = readFileSync(join(root, path))
    hash.update(`${path}\0${content.length}\0`).update(content)
  }
  for (const path of [...sources, 'build']) {
    const within = join(root, path)
    if (/\.\w+$/.test(path)) add(path)
    else {
      const entries = readdirSync(within, { recursive: true, withFileTypes: true })
      const files = entries
        .filter((entry) => !entry.isDirectory())
        .map(({ parentPath, name }) => join(parentPath, name))
      for (const file of files.sort()) add(file.slice(root.length + 1))
    }
  }
  // What npm has installed; another installer may not say.
  const installed = 'node_modules/.package-lock.json'
  add(existsSync(join(root, installed)) ? installed : 'package-lock.json')
  return hash.digest('hex').slice(0, 16)
}

async function makeCurrent(root: string, { link, linked }: Part, directory: string): Promise<void> {
  const path = join(root, 'dist', link)
  const target = join(directory, linked).slice(join(root, 'dist/').length)
  if (targetOf(path) === target) return
  // Older versions compiled into this place, and so does `npm run dev`.
  if ((await lstat(path).catch(() => null))?.isDirectory()) await rm(path, { recursive: true, force: true })
  const draft = await mkdtemp(join(root, 'dist/builds/draft-'))
  await symlink(target, join(draft, 'link'), 'junction')
  await rename(join(draft, 'link'), path)
  await rm(draft, { recursive: true, force: true })
  // From now on it is kept for a day after another one takes its place.
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

/** A server that runs may still load parts of an old build, so the last ones stay for a day. */
async function removeOld(root: string, builds: string): Promise<void> {
  const current = Object.values(parts).map(({ link }) => targetOf(join(root, 'dist', link)))
  const others = (await readdir(builds)).filter((name) => !current.some((target) => target?.includes(name)))
  const dated = await Promise.all(
    others.map(async (name) => {
      const found = await lstat(join(builds, name)).catch(() => null)
      return { name, part: name.replace(/-.*/, ''), mtimeMs: found?.mtimeMs ?? 0 }
    }),
  )
  dated.sort((one, other) => other.mtimeMs - one.mtimeMs)
  for (const [index, { name, part, mtimeMs }] of dated.entries()) {
    const newer = dated.slice(0, index).filter((one) => one.part === part).length
    // Another process may be working on a draft.
    const isTooMany = newer >= maxOld && part !== 'draft'
    if (isTooMany || mtimeMs < Date.now() - dayMs) await rm(join(builds, name), { recursive: true, force: true })
  }
  // Left by older versions, which compiled file by file. package.json would pass for that of the checkout.
  for (const name of ['package.json', 'prisma']) await rm(join(root, 'dist', name), { recursive: true, force: true })
}
