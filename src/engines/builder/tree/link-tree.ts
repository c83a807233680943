// Builds an in-memory tree of an output's folders, files and links, and resolves the links.
import type { Pauses } from '../../../platform/pauses.ts'

export type LinkedTree<File> = {
  files: ReadonlyMap<string, File>
  /** Maps paths to the unresolved targets. */
  links: ReadonlyMap<string, string>
  /** Empty folders may be left out. */
  folders?: readonly string[]
  /** The prefix of absolute targets. */
  root: string
}

export type Node = {
  parent: Node | null
  /** For non-empty folders. */
  children: Map<string, Node> | null
  /** The path of a file, else null. */
  file: string | null
  link: Link | null
}
type Link = { path: string; target: string; end: End | null; isOpen: boolean }
export type Destination = Node | 'outside' | 'absent'
/** `hops` is the number of links followed. */
type End = { destination: Destination; hops: number }

/** Called before work on this many names and bytes of paths; throws if the total is too much. */
export type Charge = (names: number, bytes: number) => void

const maxHops = 40
// A folder uses 300 bytes of memory.
const namesOfNode = 3

const newNode = (parent: Node | null): Node => ({ parent, children: null, file: null, link: null })

export async function buildTree<File>({ files, links, folders }: LinkedTree<File>, pay: Charge, pauses: Pauses) {
  const root = newNode(null)
  const linkNodes = new Map<string, Node>()

  function at(path: string): Node {
    let node = root
    let created = 0
    for (const name of path.split('/')) {
      node.children ??= new Map()
      let child = node.children.get(name)
      if (!child) {
        child = newNode(node)
        node.children.set(name, child)
        created++
      }
      node = child
    }
    pay(created * namesOfNode, path.length)
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

/** A link being resolved name by name as in the kernel, but never above the root. */
type Walk = { link: Link; names: string[]; next: number; at: Node; hops: number }

/**
 * Resolves links, each only once, because results are cached. Uses a stack instead of recursion, since all links may
 * form one chain.
 */
export function createResolver(
  root: Node,
  prefix: string,
  pay: Charge,
  pauses: Pauses,
): (node: Node) => Promise<Destination> {
  function startWalk(node: Node): Walk {
    const link = node.link!
    const { target } = link
    const isAbsolute = target.startsWith('/')
    const names = (isAbsolute ? target.slice(prefix.length) : target).split('/')
    pay(names.length, target.length)
    link.isOpen = true
    if (isAbsolute && target !== prefix && !target.startsWith(`${prefix}/`))
      link.end = { destination: 'outside', hops: 1 }
    return { link, names, next: 0, at: isAbsolute ? root : node.parent!, hops: 1 }
  }

  /** Advances to the end (null), or returns a link that must be resolved first. */
  function advance(walk: Walk): Node | null {
    const end = (destination: Destination) => {
      walk.link.end = { destination, hops: walk.hops }
      return null
    }
    for (; walk.next < walk.names.length; walk.next++) {
      const name = walk.names[walk.next]!
      // Nothing, not even an empty name, may follow a file's name.
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
      // A link that is already being resolved is a loop.
      walk.hops += child.link.end?.hops ?? Number.POSITIVE_INFINITY
      if (walk.hops > maxHops) return end('absent')
      const { destination } = child.link.end!
      if (typeof destination === 'string') return end(destination)
      walk.at = destination
    }
    return end(walk.at)
  }

  return async (node) => {
    const walks = node.link!.end === null ? [startWalk(node)] : []
    for (let walk = walks.at(-1); walk; walk = walks.at(-1)) {
      const pause = pauses()
      if (pause) await pause
      const first = walk.link.end === null ? advance(walk) : null
      if (first) walks.push(startWalk(first))
      else walks.pop()
    }
    return node.link!.end!.destination
  }
}
