// The end of a server's build: the tree that the build left becomes the tree that the server runs from.
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { removeTree } from '../../platform/remove-tree.ts'
import { checkPath, checkTarget, type Limits, longestTarget, refusal, tooLarge } from './entries.ts'

const run = promisify(execFile)

export const serverLimits: Limits = { entries: 300_000, bytes: 4 * 1024 ** 3, pathBytes: 3000, depth: 200 }

const longestField = serverLimits.pathBytes + longestTarget

/** Reads the list that a workspace makes of its tree; refuses what no server may have. Returns the size of all files. */
export async function readList(list: AsyncIterable<Buffer>, limits = serverLimits): Promise<{ bytes: number }> {
  let [entries, bytes] = [0, 0]
  let about: Buffer | null = null
  for await (const field of fieldsOf(list)) {
    if (about === null) {
      about = field
      continue
    }
    const [head = '', kind, names, size] = /^(\S) (\d+) (\d+) /.exec(about.toString('latin1')) ?? []
    const path = checkPath(about.subarray(head.length), limits)
    about = null
    if (++entries > limits.entries) throw tooLarge(`more than ${limits.entries} files`)
    if (kind === 'l') checkTarget(path, field)
    else if (kind === 'f') {
      if (names !== '1') throw refusal(path, 'has another name, as a hard link,')
      bytes += Number(size)
      if (bytes > limits.bytes) throw tooLarge(`larger than ${Math.floor(limits.bytes / 1024 ** 2)} MiB`)
    } else if (kind !== 'd') throw refusal(path, 'is neither a file nor a folder')
  }
  return { bytes }
}

/** The parts that NUL ends. */
async function* fieldsOf(list: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of list) {
    let bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (let end = bytes.indexOf(0); end >= 0; end = bytes.indexOf(0)) {
      yield bytes.subarray(0, end)
      bytes = bytes.subarray(end + 1)
    }
    if (bytes.length > longestField) throw tooLarge('made of paths that are too long')
    rest = bytes
  }
}

/** No process of the build is left that could change it meanwhile. It then belongs to the platform, as all it serves. */
export async function moveTree(tree: string, directory: string): Promise<void> {
  if (process.getuid?.() === 0) await run('chown', ['-R', '-h', '-P', '0:0', '--', tree])
  await removeTree(directory)
  await mkdir(dirname(directory), { recursive: true, mode: 0o755 })
  // It copies where builds are on another file system.
  await run('mv', ['-T', '--', tree, directory])
}
