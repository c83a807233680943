// Resolves symbolic links of an output in memory, never on disk.
import { checkPath, type Limits, printable } from './entries.ts'
import { BuildFailure } from './failure.ts'

export type LinkedTree<File> = {
  files: ReadonlyMap<string, File>
  /** Path → target, as it is written in the link. */
  links: ReadonlyMap<string, string>
  /** Empty folders may be left out. */
  folders?: Iterable<string>
  /** Prefix of absolute paths in targets. */
  root: string
}

const mostHops = 40
// About a second of a core; 50,000 links with ten names each need half of it.
const mostNames = 1_000_000

export type Place = { path: string; is: 'file' | 'folder' } | 'outside' | 'absent'

/**
 * The files, with a copy at every path that a link leads to. A link into a folder that is being followed already is
 * skipped, so that loops end.
 */
export function followLinks<File>(tree: LinkedTree<File>, limits: Omit<Limits, 'bytes'>): Map<string, File> {
  const found = new Map(tree.files)
  if (tree.links.size === 0) return found
  const children = childrenOf(tree)
  const mostFiles = limits.entries
  let steps = 0
  let walked = 0

  function put(path: string, file: File): void {
    found.set(path, file)
    count()
  }

  /** Folders that link to each other are walked in every combination, even if they are empty. */
  function count(): void {
    if (++steps > mostFiles)
      throw new BuildFailure('output_too_large', `Links make more than ${mostFiles} files of it.`)
  }

  /** Bounds chains of long links (4 KB): each name in their targets is a step. */
  function walk(): void {
    if (++walked > mostNames) throw new BuildFailure('output_too_large', 'The output has too many links to follow.')
  }

  /** Copies the content of a folder below another path; `within` are the folders that are being followed. */
  function putFolder(folder: string, below: string, within: readonly string[]): void {
    count()
    for (const name of children.get(folder) ?? []) {
      const from = join(folder, name)
      const to = join(below, name)
      // Links through links could otherwise make paths, and the recursion, arbitrarily deep.
      checkPath(Buffer.from(to), limits)
      const file = tree.files.get(from)
      if (file !== undefined) put(to, file)
      else if (tree.links.has(from)) follow(from, to, within)
      else putFolder(from, to, within)
    }
  }

  function follow(link: string, to: string, within: readonly string[]): void {
    const place = placeOf(tree, children, link, walk)
    if (place === 'outside') throw refused(link, 'is a link that leaves the output directory')
    if (place === 'absent') throw refused(link, `is a link to ${printable(tree.links.get(link)!)}, which is not there`)
    if (place.is === 'file') return void put(to, tree.files.get(place.path)!)
    // A loop: the folder contains this link, or one that is being followed.
    if (within.some((open) => open === place.path)) return
    putFolder(place.path, to, [...within, place.path])
  }

  for (const link of tree.links.keys()) follow(link, link, [])
  return found
}

const join = (folder: string, name: string) => (folder === '' ? name : `${folder}/${name}`)

const refused = (link: string, why: string) =>
  new BuildFailure('output_unsafe', `${link} ${why}, so it cannot be published.`)

/** The names in each folder. */
export function childrenOf<File>({ files, links, folders }: LinkedTree<File>): Map<string, Set<string>> {
  const children = new Map<string, Set<string>>([['', new Set()]])
  const add = (path: string) => {
    // Up from the name until a folder is known: deep trees share their upper part.
    for (let rest = path; rest !== ''; ) {
      const slash = rest.lastIndexOf('/')
      const folder = slash < 0 ? '' : rest.slice(0, slash)
      const names = children.get(folder)
      if (names) return void names.add(rest.slice(slash + 1))
      children.set(folder, new Set([rest.slice(slash + 1)]))
      rest = folder
    }
  }
  for (const path of files.keys()) add(path)
  for (const path of links.keys()) add(path)
  for (const folder of folders ?? []) if (!children.has(folder)) children.set(folder, new Set())
  return children
}

/** Resolves a link name by name, as the kernel does, but never above the root. */
export function placeOf<File>(
  tree: LinkedTree<File>,
  children: Map<string, Set<string>>,
  link: string,
  walk: () => void = () => {},
): Place {
  const at: string[] = []
  const ahead = link.split('/').reverse()
  let hops = 0
  while (ahead.length > 0) {
    const name = ahead.pop()!
    walk()
    if (name === '' || name === '.') continue
    if (name === '..') {
      if (at.pop() === undefined) return 'outside'
      continue
    }
    at.push(name)
    const path = at.join('/')
    const target = tree.links.get(path)
    if (target === undefined) {
      if (tree.files.has(path) && ahead.length > 0) return 'absent'
      if (!tree.files.has(path) && !children.has(path)) return 'absent'
      continue
    }
    if (++hops > mostHops) return 'absent'
    at.pop()
    if (!target.startsWith('/')) ahead.push(...target.split('/').reverse())
    else if (target !== tree.root && !target.startsWith(`${tree.root}/`)) return 'outside'
    else {
      at.length = 0
      ahead.push(...target.slice(tree.root.length).split('/').reverse())
    }
  }
  const path = at.join('/')
  return { path, is: tree.files.has(path) ? 'file' : 'folder' }
}
