// Checks the tree that a server's build left and moves it to where the server runs from.
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { removeTree } from '../../../platform/files/remove-tree.ts'
import { checkPath, checkTarget, type Limits, maxTargetLength, refusal, tooLarge } from '../tree/entries.ts'

const run = promisify(execFile)

export const serverLimits: Limits = { entries: 300_000, bytes: 4 * 1024 ** 3, pathBytes: 3000, depth: 200 }

const maxFieldLength = serverLimits.pathBytes + maxTargetLength
// A letter and three numbers.
const maxHeadLength = 64

/** Reads a workspace's list of its tree and refuses disallowed entries. Returns the size of all files. */
export async function readList(list: AsyncIterable<Buffer>, limits = serverLimits): Promise<{ bytes: number }> {
  let [entries, bytes] = [0, 0]
  let entry: Buffer | null = null
  let rest: Buffer = Buffer.alloc(0)

  /** Adds a NUL-terminated field. */
  function addField(field: Buffer): void {
    if (entry === null) {
      entry = field
      return
    }
    const [head = '', kind, names, size] = /^(\S) (\d+) (\d+) /.exec(entry.toString('latin1', 0, maxHeadLength)) ?? []
    const path = checkPath(entry.subarray(head.length), limits)
    entry = null
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
      addField(octets.subarray(begin, end))
      begin = end + 1
    }
    rest = octets.subarray(begin)
    if (rest.length > maxFieldLength) throw tooLarge('made of paths that are too long')
  }
  return { bytes }
}

/** No process of the build is left that could change the tree. From now on, it belongs to the platform. */
export async function moveTree(tree: string, directory: string): Promise<void> {
  if (process.getuid?.() === 0) await run('chown', ['-R', '-h', '-P', '0:0', '--', tree])
  await removeTree(directory)
  await mkdir(dirname(directory), { recursive: true, mode: 0o755 })
  // Unlike rename, `mv` copies across file systems.
  await run('mv', ['-T', '--', tree, directory])
}
