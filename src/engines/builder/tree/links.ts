// Resolves the symbolic links of an output in memory, never on disk.
import { createPauses, type Pauses } from '../../../platform/pauses.ts'
import { BuildFailure } from '../explain/failure.ts'
import { checkPath, type Limits, printable } from './entries.ts'
import { buildTree, createResolver, type LinkedTree, type Node } from './link-tree.ts'

export type LinkLimits = Pick<Limits, 'entries' | 'pathBytes' | 'depth'> & {
  /** For all paths together, including those created by links. */
  allPathBytes: number
}

// About one second of CPU time: a name takes 0.1 to 0.3 µs, a path of a kilobyte 10 µs.
const maxNames = 1_000_000
const maxBytes = 64 << 20
// Creating and checking a path takes 1 to 2 µs plus the cost of its bytes.
const namesOfPath = 4

/**
 * Returns the files with a copy at every path that a link creates. Skips links to a folder that is already being
 * followed, so that loops end.
 */
export async function followLinks<File>(
  tree: LinkedTree<File>,
  limits: LinkLimits,
  pauses: Pauses = createPauses(),
): Promise<Map<string, File>> {
  const { files, links, folders } = tree
  // Checked first, because an archive of a few kilobytes can contain many megabytes of paths.
  const fileBytes = bytesOf(files.keys())
  if (fileBytes + bytesOf(links.keys()) > limits.allPathBytes || bytesOf(folders ?? []) > limits.allPathBytes)
    throw tooLong(limits)
  const found = new Map(files)
  if (links.size === 0) return found
  let [steps, names, bytes, pathBytes] = [0, 0, 0, fileBytes]

  /** Folders that link to each other are visited in every combination, even if they are empty. */
  function count(): void {
    if (++steps > limits.entries)
      throw new BuildFailure('output_too_large', `Its links expand to more than ${limits.entries} files.`)
  }

  function charge(moreNames: number, moreBytes: number): void {
    names += moreNames
    bytes += moreBytes
    if (names > maxNames || bytes > maxBytes)
      throw new BuildFailure('output_too_large', 'The output has too many links to follow.')
  }

  function addFile(path: string, file: string): void {
    count()
    pathBytes += Buffer.byteLength(path)
    if (pathBytes > limits.allPathBytes) throw tooLong(limits)
    found.set(path, files.get(file)!)
  }

  const { root, linkNodes } = await buildTree(tree, charge, pauses)
  const resolve = createResolver(root, tree.root, charge, pauses)

  /** Copies a folder's content below another path. `within` lists the folders being followed. */
  async function addFolder(folder: Node, below: string, within: readonly Node[]): Promise<void> {
    count()
    for (const [name, child] of folder.children ?? []) {
      const to = `${below}/${name}`
      // Charged for skipped links too, because a folder of loops is read once for each of them.
      charge(namesOfPath, to.length)
      const pause = pauses()
      if (pause) await pause
      // Otherwise links through links could make paths, and the recursion, arbitrarily deep.
      checkPath(Buffer.from(to), limits)
      if (child.link !== null) await follow(child, to, within)
      else if (child.file !== null) addFile(to, child.file)
      else await addFolder(child, to, within)
    }
  }

  async function follow(node: Node, to: string, within: readonly Node[]): Promise<void> {
    const { path, target } = node.link!
    const destination = await resolve(node)
    if (destination === 'outside') throw unsafe(path, 'is a link that points outside the output directory')
    if (destination === 'absent') throw unsafe(path, `is a link to ${printable(target)}, which does not exist`)
    if (destination.file !== null) return addFile(to, destination.file)
    // Skips a loop: the folder contains this link, or one being followed.
    if (!within.includes(destination)) await addFolder(destination, to, [...within, destination])
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

const unsafe = (link: string, why: string) =>
  new BuildFailure('output_unsafe', `${link} ${why}, so it cannot be published.`)
