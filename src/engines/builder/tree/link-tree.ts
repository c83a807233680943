// The folders, files and links of an output as a tree in memory, and where each link leads.
import type { Pauses } from '../../../platform/pauses.ts'

export type LinkedTree<File> = {
  files: ReadonlyMap<string, File>
  /** Path → target, as it is written in the link. */
  links: ReadonlyMap<string, string>
  /** Empty folders may be left out. */
  folders?: readonly string[]
  /** Prefix of absolute paths in targets. */
  root: string
}

export type Node = {
  parent: Node | null
  /** In a folder that is not empty. */
  children: Map<string, Node> | null
  /** The path, if it is a file. */
  file: string | null
  link: Link | null
}
type Link = { path: string; target: string; end: End | null; isOpen: boolean }
export type Place = Node | 'outside' | 'absent'
/** `hops` are the links followed until there, or until it was known to lead nowhere. */
type End = { place: Place; hops: number }

/** Called before work that costs as many names and bytes of paths; throws when it is too much. */
export type Pay = (names: number, bytes: number) => void

const maxHops = 40
// A folder takes 300 bytes of memory.
const namesOfNode = 3

const newNode = (parent: Node | null): Node => ({ parent, children: null, file: null, link: null })

export async function treeOf<File>({ files, links, folders }: LinkedTree<File>, pay: Pay, pauses: Pauses) {
  const root = newNode(null)
  const linkNodes = new Map<string, Node>()

  function at(path: string): Node {
    let node = root
    let made = 0
    for (const name of path.split('/')) {
      node.children ??= new Map()
      let child = node.children.get(name)
      if (!child) {
        child = newNode(node)
        node.children.set(name, child)
        made++
      }
      node = child
    }
    pay(made * namesOfNode, path.length)
    return node
  }

  for (const path of files.keys()) {
    at(path).file = path
    const pause = pauses()
    if (pause) await pause
  }
  for (const [path, target] of links) {
    const node = at(path)
    node.link = { path, target, end: null, isOpen: false }
    linkNodes.set(path, node)
    const pause = pauses()
    if (pause) await pause
  }
  for (const path of folders ?? []) {
    at(path)
    const pause = pauses()
    if (pause) await pause
  }
  return { root, linkNodes }
}

/** One link on its way, name by name, as the kernel goes, but never above the root. */
type Walk = { link: Link; names: string[]; next: number; at: Node; hops: number }

/**
 * Finds where links lead. Each is walked once, whatever else leads through it: its end is kept with it. A stack of walks
 * instead of a recursion, since a chain may be as long as there are links.
 */
export function createResolver(root: Node, prefix: string, pay: Pay, pauses: Pauses): (node: Node) => Promise<Place> {
  function begin(node: Node): Walk {
    const link = node.link!
    const { target } = link
    const isAbsolute = target.startsWith('/')
    const names = (isAbsolute ? target.slice(prefix.length) : target).split('/')
    pay(names.length, target.length)
    link.isOpen = true
    if (isAbsolute && target !== prefix && !target.startsWith(`${prefix}/`)) link.end = { place: 'outside', hops: 1 }
    return { link, names, next: 0, at: isAbsolute ? root : node.parent!, hops: 1 }
  }

  /** Goes on until the end, or until a link whose own end is wanted first, which is returned. */
  function advance(walk: Walk): Node | null {
    const end = (place: Place) => {
      walk.link.end = { place, hops: walk.hops }
      return null
    }
    for (; walk.next < walk.names.length; walk.next++) {
      const name = walk.names[walk.next]!
      // Not even an empty name may follow that of a file.
      if (walk.at.file !== null) return end('absent')
      if (name === '' || name === '.') continue
      if (name === '..') {
        if (walk.at.parent === null) return end('outside')
        walk.at = walk.at.parent
        continue
      }
      const child = walk.at.children?.get(name)
      if (!child) return end('absent')
      if (child.link === null) {
        walk.at = child
        continue
      }
      if (child.link.end === null && !child.link.isOpen) return child
      // One that is being walked already leads back to itself.
      walk.hops += child.link.end?.hops ?? Number.POSITIVE_INFINITY
      if (walk.hops > maxHops) return end('absent')
      const { place } = child.link.end!
      if (typeof place === 'string') return end(place)
      walk.at = place
    }
    return end(walk.at)
  }

  return async (node) => {
    const walks = node.link!.end === null ? [begin(node)] : []
    for (let walk = walks.at(-1); walk; walk = walks.at(-1)) {
      const pause = pauses()
      if (pause) await pause
      const first = walk.link.end === null ? advance(walk) : null
      if (first) walks.push(begin(first))
      else walks.pop()
    }
    return node.link!.end!.place
  }
}
