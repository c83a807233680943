// The source of a deployment whose files are published as they were sent: read from the store, without a repository.
import type { Artifacts } from '../../platform/artifacts.ts'
import type { UploadedFile } from '../../services/deployments/sources.ts'
import type { FileContent } from './entries.ts'
import type { Source, TreeEntry } from './source-tree.ts'
import { loadUploaded, streamUploaded } from './uploaded-source.ts'

const linkMode = 0o120000
const readsAhead = 8

export function openStoredSource(artifacts: Artifacts, files: readonly UploadedFile[], signal: AbortSignal): Source {
  const entries = new Map<string, TreeEntry>()
  for (const { path, sha256, size, mode } of files) {
    const name = Buffer.from(path)
    entries.set(name.toString('latin1'), { name, kind: mode === linkMode ? 'link' : 'file', hash: sha256, size })
  }

  const isSmall = ({ size }: TreeEntry) => size <= artifacts.mostBufferedBytes

  /** Small files are read some ahead of whoever takes them. */
  async function* read(wanted: Iterable<TreeEntry>): AsyncGenerator<FileContent> {
    const left = [...wanted]
    const ahead: Promise<Buffer>[] = []
    let begun = 0
    for (const [at, entry] of left.entries()) {
      signal.throwIfAborted()
      for (; begun < left.length && begun < at + readsAhead; begun++) {
        const next = left[begun]!
        if (!isSmall(next)) continue
        ahead[begun] = loadUploaded(artifacts, next.hash, next.size)
        // Whoever takes it hears of it.
        ahead[begun]!.catch(() => {})
      }
      const whole = () => ahead[at] ?? loadUploaded(artifacts, entry.hash, entry.size)
      const stream = () => streamUploaded(artifacts, entry.hash, entry.size)
      yield { whole, stream }
      delete ahead[at]
    }
  }

  return {
    directory: '',
    commit: '',
    message: '',
    entries,
    submodules: [],
    usesLfs: false,
    async text(path, mostBytes) {
      const entry = entries.get(path)
      if (entry?.kind !== 'file' || entry.size > mostBytes) return null
      return (await loadUploaded(artifacts, entry.hash, entry.size)).toString()
    },
    read,
    close() {},
  }
}
