// The end of a server's build: the tree that the build left becomes the tree that the server runs from.
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { removeTree } from '../../../platform/files/remove-tree.ts'
import { checkPath, checkTarget, type Limits, maxTargetLength, refusal, tooLarge } from '../tree/entries.ts'

const run = promisify(execFile)

export const serverLimits: Limits = { entries: 300_000, bytes: 4 * 1024 ** 3, pathBytes: 3000, depth: 200 }

const maxFieldLength = serverLimits.pathBytes + maxTargetLength
// A letter and two numbers.
const maxHeadLength = 64

/** Reads the list that a workspace makes of its tree; refuses what no server may have. Returns the size of all files. */
export async function readList(list: AsyncIterable<Buffer>, limits = serverLimits): Promise<{ bytes: number }> {
  let [entries, bytes] = [0, 0]
  let about: Buffer | null = null
  let rest: Buffer = Buffer.alloc(0)

  /** NUL ends each of them. */
  function take(field: Buffer): void {
    if (about === null) {
      about = field
      return
    }
    const [head = '', kind, names, size] = /^(\S) (\d+) (\d+) /.exec(about.toString('latin1', 0, maxHeadLength)) ?? []
    const path = checkPath(about.subarray(head.length), limits)
    about = null
    if (++entries > limits.entries) throw tooLarge(`more than ${limits.entries} files`)
    if (kind === 'l') checkTarget(path, field)
    else if (kind === 'f') {
      if (names !== '1') throw refusal(path, 'is a hard link')
      bytes += Number(size)
      if (bytes > limits.bytes) throw tooLarge(`larger than ${Math.floor(limits.bytes / 1024 ** 2)} MiB`)
    } else if (kind !== 'd') throw refusal(path, 'is neither a file nor a folder')
  }

  for await (const chunk of list) {
    const octets = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let begin = 0
    for (let end = octets.indexOf(0); end >= 0; end = octets.indexOf(0, begin)) {
      take(octets.subarray(begin, end))
      begin = end + 1
    }
    rest = octets.subarray(begin)
    if (rest.length > maxFieldLength) throw tooLarge('made of paths that are too long')
  }
  return { bytes }
}

/** No process of the build is left that could change it meanwhile. It then belongs to the platform, as all it serves. */
export async function moveTree(tree: string, directory: string): Promise<void> {
  if (process.getuid?.() === 0) await run('chown', ['-R', '-h', '-P', '0:0', '--', tree])
  await removeTree(directory)
  await mkdir(dirname(directory), { recursive: true, mode: 0o755 })
  // It copies where builds are on another file system.
  await run('mv', ['-T', '--', tree, directory])
}
