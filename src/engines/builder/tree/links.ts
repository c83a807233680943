// Resolves symbolic links of an output in memory, never on disk.
import { createPauses, type Pauses } from '../../../platform/pauses.ts'
import { BuildFailure } from '../explain/failure.ts'
import { checkPath, type Limits, printable } from './entries.ts'
import { createResolver, type LinkedTree, type Node, treeOf } from './link-tree.ts'

export type LinkLimits = Pick<Limits, 'entries' | 'pathBytes' | 'depth'> & {
  /** Of all paths together, with those that links make. */
  allPathBytes: number
}

// About a second of a core: names take 0.1 to 0.3 µs, a path of a kilobyte ten.
const maxNames = 1_000_000
const maxBytes = 64 << 20
// To make and check a path takes 1 to 2 µs besides its bytes.
const namesOfPath = 4

/**
 * The files, with a copy at every path that a link leads to. A link into a folder that is being followed already is
 * skipped, so that loops end.
 */
export async function followLinks<File>(
  tree: LinkedTree<File>,
  limits: LinkLimits,
  pauses: Pauses = createPauses(),
): Promise<Map<string, File>> {
  const { files, links, folders } = tree
  // Before anything is made of them: an archive of a few kilobytes can have paths of many megabytes.
  const given = bytesOf(files.keys())
  if (given + bytesOf(links.keys()) > limits.allPathBytes || bytesOf(folders ?? []) > limits.allPathBytes)
    throw tooLong(limits)
  const found = new Map(files)
  if (links.size === 0) return found
  let [steps, names, bytes, pathBytes] = [0, 0, 0, given]

  /** Folders that link to each other are walked in every combination, even if they are empty. */
  function count(): void {
    if (++steps > limits.entries)
      throw new BuildFailure('output_too_large', `Its links expand to more than ${limits.entries} files.`)
  }

  function pay(moreNames: number, moreBytes: number): void {
    names += moreNames
    bytes += moreBytes
    if (names > maxNames || bytes > maxBytes)
      throw new BuildFailure('output_too_large', 'The output has too many links to follow.')
  }

  function put(path: string, file: string): void {
    count()
    pathBytes += Buffer.byteLength(path)
    if (pathBytes > limits.allPathBytes) throw tooLong(limits)
    found.set(path, files.get(file)!)
  }

  const { root, linkNodes } = await treeOf(tree, pay, pauses)
  const placeOf = createResolver(root, tree.root, pay, pauses)

  /** Copies the content of a folder below another path; `within` are the folders that are being followed. */
  async function putFolder(folder: Node, below: string, within: readonly Node[]): Promise<void> {
    count()
    for (const [name, child] of folder.children ?? []) {
      const to = `${below}/${name}`
      // Also for links that are skipped: a folder of loops is read once for each of them.
      pay(namesOfPath, to.length)
      const pause = pauses()
      if (pause) await pause
      // Links through links could otherwise make paths, and the recursion, arbitrarily deep.
      checkPath(Buffer.from(to), limits)
      if (child.link !== null) await follow(child, to, within)
      else if (child.file !== null) put(to, child.file)
      else await putFolder(child, to, within)
    }
  }

  async function follow(node: Node, to: string, within: readonly Node[]): Promise<void> {
    const { path, target } = node.link!
    const place = await placeOf(node)
    if (place === 'outside') throw refused(path, 'is a link that points outside the output directory')
    if (place === 'absent') throw refused(path, `is a link to ${printable(target)}, which does not exist`)
    if (place.file !== null) return put(to, place.file)
    // A loop: the folder contains this link, or one that is being followed.
    if (!within.includes(place)) await putFolder(place, to, [...within, place])
  }

  for (const [path, node] of linkNodes) await follow(node, path, [])
  return found
}

function bytesOf(paths: Iterable<string>): number {
  let bytes = 0
  for (const path of paths) bytes += Buffer.byteLength(path)
  return bytes
}

const tooLong = ({ allPathBytes }: LinkLimits) =>
  new BuildFailure(
    'output_too_large',
    `The names and folders of its files take more than ${allPathBytes / 1024 ** 2} MiB.`,
  )

const refused = (link: string, why: string) =>
  new BuildFailure('output_unsafe', `${link} ${why}, so it cannot be published.`)
