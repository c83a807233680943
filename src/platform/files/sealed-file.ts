// A file of rows, encrypted in blocks, so that neither writing nor reading blocks the event loop or needs twice the memory.
// Each block contains the file's id and its own index, and the last one is marked, so a changed or truncated file is
// refused.
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { placeOf, type Vault } from '../secrets/secrets.ts'

/** The first bytes. A new format of rows gets a new version, so that no reader confuses the two. */
const magic = Buffer.from('berth-rows 1\n', 'latin1')
const blockCharacters = 32 << 10
const maxBlockBytes = 256 << 20

export type SealedFile = { path: string; vault: Vault; maxBytes: number }

export class UnusableFile extends Error {
  override name = 'UnusableFile'
}

/** Replaces the file atomically, or leaves it unchanged. Returns its size. */
export async function writeSealed(file: SealedFile, head: unknown, rows: Iterable<unknown>): Promise<number> {
  const { path, vault, maxBytes } = file
  const id = randomUUID()
  const temporary = `${path}.${id}.new`
  const handle = await open(temporary, 'wx', 0o600)
  let index = 0
  let size = 0
  async function put(octets: Buffer): Promise<void> {
    size += octets.length
    if (size > maxBytes) throw new UnusableFile(`it would have more than ${maxBytes} bytes`)
    await handle.appendFile(octets)
  }
  async function putBlock(json: string): Promise<void> {
    const sealed = vault.seal(`["${id}",${index++},${json}]`, placeOf.snapshot(basename(path)))
    const length = Buffer.alloc(4)
    length.writeUInt32BE(sealed.length)
    await put(Buffer.concat([length, sealed]))
  }
  try {
    try {
      await put(magic)
      await putBlock(JSON.stringify(head))
      for (const block of blocksOf(rows)) await putBlock(block)
      await putBlock('null')
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await syncDirectory(dirname(path))
  return size
}

function* blocksOf(rows: Iterable<unknown>): Generator<string> {
  let texts: string[] = []
  let characters = 0
  for (const row of rows) {
    const text = JSON.stringify(row)
    texts.push(text)
    characters += text.length
    if (characters < blockCharacters) continue
    yield `[${texts.join(',')}]`
    texts = []
    characters = 0
  }
  if (texts.length > 0) yield `[${texts.join(',')}]`
}

/** Without this, a loss of power could undo the rename. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Null if there is no file. Throws UnusableFile unless it is complete, ours, and passes `accept`, which is called first. */
export async function readSealed<Head, Row>(
  { path, vault, maxBytes }: SealedFile,
  accept: (head: Head) => void,
): Promise<{ head: Head; rows: Row[] } | null> {
  const handle = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (!handle) return null
  try {
    const { size } = await handle.stat()
    if (size > maxBytes) throw new UnusableFile(`it has more than ${maxBytes} bytes`)
    const first = await take(handle, Math.min(size, magic.length))
    if (!first.equals(magic)) throw new UnusableFile('it is of another program or version')
    let id: string | null = null
    let index = 0
    async function takeBlock(): Promise<unknown> {
      const length = (await take(handle!, 4)).readUInt32BE()
      if (length > Math.min(size, maxBlockBytes)) throw new UnusableFile('a block is larger than the file')
      const [file, place, content] = JSON.parse(
        openBlock(vault, await take(handle!, length), placeOf.snapshot(basename(path))),
      )
      id ??= file
      if (file !== id || place !== index++) throw new UnusableFile('its blocks are not in order')
      return content
    }
    const head = (await takeBlock()) as Head
    accept(head)
    const rows: Row[] = []
    for (;;) {
      const block = (await takeBlock()) as Row[] | null
      if (block === null) return { head, rows }
      for (const row of block) rows.push(row)
    }
  } finally {
    await handle.close()
  }
}

function openBlock(vault: Vault, sealed: Buffer, place: string): string {
  try {
    return vault.open(sealed, place).toString()
  } catch {
    throw new UnusableFile('it is damaged, or was written with another SECRETS_KEY')
  }
}

async function take(handle: FileHandle, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length)
  if (bytesRead < length) throw new UnusableFile('it is not complete')
  return buffer
}
