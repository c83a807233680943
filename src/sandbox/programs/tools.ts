// Finds the tools that commands need outside of /usr: the Node that runs Berth, and package managers.
import { access, readFile, realpath } from 'node:fs/promises'
import { basename, delimiter, dirname, join } from 'node:path'
import type { NamespaceTools } from '../network/namespace.ts'

/** Read-only mounts and links that make tools available in a sandbox, and its PATH. */
export type Tools = {
  node: string
  mounts: { host: string; inside: string }[]
  links: { target: string; inside: string }[]
  path: string
}

const PACKAGE_MANAGERS = ['npm', 'npx', 'pnpm', 'pnpx', 'yarn', 'yarnpkg', 'corepack']
const SYSTEM_PATH = ['/usr/local/bin', '/usr/bin', '/bin']
const NODE = '/opt/node'
const LINKS = '/opt/bin'

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )
const inSystem = (path: string) => path.startsWith('/usr/')

export async function findTools(searchPath: string, execPath = process.execPath): Promise<Tools> {
  const program = await realpath(execPath)
  const tools: Tools = { node: program, mounts: [], links: [], path: '' }
  if (!inSystem(program)) {
    tools.node = `${NODE}/bin/node`
    tools.mounts.push(await nodeMount(program))
  }
  const packages = new Map<string, string>()
  for (const name of PACKAGE_MANAGERS) {
    const script = await find(name, searchPath)
    if (script === undefined || inSystem(script)) continue
    const root = await packageOf(script)
    if (root === undefined) continue
    if (!packages.has(root)) packages.set(root, `/opt/packages/${basename(root)}`)
    tools.links.push({ target: packages.get(root)! + script.slice(root.length), inside: `${LINKS}/${name}` })
  }
  for (const [host, inside] of packages) tools.mounts.push({ host, inside })
  tools.path = [dirname(tools.node), LINKS, ...SYSTEM_PATH].join(':')
  return tools
}

/** Mounts the whole installation only if it certainly is one: a `node` in ~/bin must not mount the home directory. */
async function nodeMount(program: string): Promise<{ host: string; inside: string }> {
  const prefix = dirname(dirname(program))
  const whole =
    (await exists(join(prefix, 'include/node/node.h'))) && (await exists(join(prefix, 'lib/node_modules/npm')))
  return whole ? { host: prefix, inside: NODE } : { host: program, inside: `${NODE}/bin/node` }
}

/** The real path of a program. */
export async function find(name: string, searchPath: string): Promise<string | undefined> {
  for (const directory of searchPath.split(delimiter)) {
    if (!directory.startsWith('/')) continue
    const found = await realpath(join(directory, name)).catch(() => undefined)
    if (found !== undefined) return found
  }
  return undefined
}

/** The programs for a sandbox's network, or a sentence that says what to install. */
export async function findNamespaceTools(searchPath: string): Promise<NamespaceTools | { missing: string }> {
  const slirp4netns = await find('slirp4netns', searchPath)
  // Debian installs it in a directory that is only in root's PATH.
  const nft = await find('nft', [searchPath, '/usr/sbin', '/sbin'].join(delimiter))
  if (slirp4netns && nft) return { slirp4netns, nft }
  const packages = [...(slirp4netns ? [] : ['slirp4netns']), ...(nft ? [] : ['nftables'])]
  const verb = packages.length === 1 ? 'is' : 'are'
  return { missing: `${packages.join(' and ')} ${verb} not installed (Debian: apt install ${packages.join(' ')}).` }
}

/** The directory of the npm package that a script belongs to. */
async function packageOf(script: string): Promise<string | undefined> {
  for (let directory = dirname(script); directory !== '/'; directory = dirname(directory)) {
    if (basename(dirname(directory)) !== 'node_modules') continue
    const manifest = await readFile(join(directory, 'package.json'), 'utf8').catch(() => undefined)
    return manifest === undefined ? undefined : directory
  }
  return undefined
}
