// Uploads the files that the server is missing: small ones together in archives, large ones separately.
import type { Context } from './context.ts'
import { exitCodes, Failure } from './failures.ts'
import { contentOf, type SourceFile } from './files.ts'
import { bar } from './output.ts'
import { inParallel } from './parallel.ts'
import { size } from './text.ts'

const maxSmallBytes = 256 << 10
const maxArchiveBytes = 4 << 20
const maxArchiveFiles = 500
const maxPieceBytes = 4 << 20
const maxParallel = 6

export async function upload(context: Context, root: string, files: SourceFile[], missing: string[]): Promise<number> {
  const missingHashes = new Set(missing)
  const unique = new Map(files.filter(({ sha256 }) => missingHashes.has(sha256)).map((file) => [file.sha256, file]))
  const all = [...unique.values()]
  const total = all.reduce((sum, file) => sum + file.size, 0)
  let sent = 0
  const reportProgress = (file: SourceFile) => {
    sent += file.size
    context.out.progress(`Uploading ${bar(total ? sent / total : 1)} ${size(sent)} of ${size(total)}`)
  }
  const small = all.filter((file) => file.size <= maxSmallBytes)
  const batches = small.length > 1 ? batchesOf(small) : small.map((file) => [file])
  const large = all.filter((file) => file.size > maxSmallBytes).map((file) => [file])
  await inParallel([...batches, ...large], maxParallel, async (batch) => {
    if (batch.length === 1) await putOne(context, root, batch[0]!)
    else await postArchive(context, root, batch)
    for (const file of batch) reportProgress(file)
  })
  return total
}

function batchesOf(files: SourceFile[]): SourceFile[][] {
  const batches: SourceFile[][] = []
  let bytes = 0
  for (const file of files) {
    const last = batches.at(-1)
    if (!last || last.length >= maxArchiveFiles || bytes + file.size > maxArchiveBytes) {
      batches.push([file])
      bytes = file.size
    } else {
      last.push(file)
      bytes += file.size
    }
  }
  return batches
}

async function putOne({ send }: Context, root: string, file: SourceFile): Promise<void> {
  const content = await contentOf(root, file)
  const path = `/api/uploads/${file.sha256}`
  const type = { 'content-type': 'application/octet-stream' }
  if (content.length <= maxPieceBytes) {
    await send('PUT', path, { headers: type, body: content })
    return
  }
  // Each piece has its own timeout and retries.
  for (let from = 0; from < content.length; ) {
    const end = Math.min(from + maxPieceBytes, content.length)
    const range = { 'content-range': `bytes ${from}-${end - 1}/${content.length}` }
    const response = await send('PUT', path, { headers: { ...type, ...range }, body: content.subarray(from, end) })
    const { offset, complete } = (await response.json()) as { offset: number; complete: boolean }
    if (complete) return
    if (!(offset > from)) throw new Failure(exitCodes.unreachable, `The server didn't accept ${file.path}.`)
    from = offset
  }
}

async function postArchive(context: Context, root: string, files: SourceFile[]): Promise<void> {
  const parts: Buffer[] = []
  for (const file of files) {
    const content = await contentOf(root, file)
    parts.push(tarHeader(file.sha256, content.length), content, Buffer.alloc(-content.length & 511))
  }
  parts.push(Buffer.alloc(1024))
  await context.send('POST', '/api/uploads', {
    headers: { 'content-type': 'application/x-tar' },
    body: Buffer.concat(parts),
  })
}

/** A ustar header. Names are hashes; nothing else about a file matters here. */
function tarHeader(name: string, length: number): Buffer {
  const header = Buffer.alloc(512)
  header.write(name, 0)
  header.write('0000644\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  header.write(`${length.toString(8).padStart(11, '0')}\0`, 124)
  header.write('00000000000\0', 136)
  header.write('        ', 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}
