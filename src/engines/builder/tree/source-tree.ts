// The interface for reading the files of a commit.
import type { FileContent } from './entries.ts'

export type TreeEntry = {
  /** Raw bytes, not necessarily UTF-8. */
  name: Buffer
  kind: 'file' | 'link'
  hash: string
  size: number
}

export type Source = {
  /** The bare repository. */
  directory: string
  commit: string
  /** The first line of the commit message, at most 200 characters. */
  message: string
  /** Keyed by path in latin1, where each byte is a character. */
  entries: ReadonlyMap<string, TreeEntry>
  /** Paths are as in `entries`. */
  submodules: { path: string; commit: string }[]
  /** Whether there are Git LFS files, whose content was fetched. */
  usesLfs: boolean
  /** Null if the file does not exist or is larger than `maxBytes`. */
  text(path: string, maxBytes: number): Promise<string | null>
  read(entries: Iterable<TreeEntry>): AsyncGenerator<FileContent>
  close(): void
}

/** A path of `entries` as UTF-8 text. */
export const asText = (path: string) => Buffer.from(path, 'latin1').toString()
