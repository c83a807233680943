// The source of a prebuilt upload: reads files directly from the store, without a repository.
import type { Artifacts } from '../../../platform/artifacts/artifacts.ts'
import type { UploadedFile } from '../../../services/deployments/index.ts'
import type { FileContent } from '../tree/entries.ts'
import type { Source, TreeEntry } from '../tree/source-tree.ts'
import { loadUploaded, streamUploaded } from './uploaded-source.ts'

const linkMode = 0o120000

export function openStoredSource(artifacts: Artifacts, files: readonly UploadedFile[], signal: AbortSignal): Source {
  const entries = new Map<string, TreeEntry>()
  for (const { path, sha256, size, mode } of files) {
    const name = Buffer.from(path)
    entries.set(name.toString('latin1'), { name, kind: mode === linkMode ? 'link' : 'file', hash: sha256, size })
  }

  async function* read(wanted: Iterable<TreeEntry>): AsyncGenerator<FileContent> {
    for (const { hash: sha256, size } of wanted) {
      signal.throwIfAborted()
      const whole = () => loadUploaded(artifacts, sha256, size)
      yield { sha256, whole, stream: () => streamUploaded(artifacts, sha256, size) }
    }
  }

  return {
    directory: '',
    commit: '',
    message: '',
    entries,
    submodules: [],
    usesLfs: false,
    async text(path, maxBytes) {
      const entry = entries.get(path)
      if (entry?.kind !== 'file' || entry.size > maxBytes) return null
      return (await loadUploaded(artifacts, entry.hash, entry.size)).toString()
    },
    read,
    close() {},
  }
}
