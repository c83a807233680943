// A commit as the builder reads it: the files it has, by path, and their content.
import type { FileContent } from './entries.ts'

export type TreeEntry = {
  /** As in git, not necessarily UTF-8. */
  name: Buffer
  kind: 'file' | 'link'
  hash: string
  size: number
}

export type Source = {
  /** The bare repository. */
  directory: string
  commit: string
  /** First line of the commit's message, of at most 200 characters; empty if it has none. */
  message: string
  /** By path in latin1: each byte is a character. */
  entries: ReadonlyMap<string, TreeEntry>
  /** By path, as in `entries`. */
  submodules: { path: string; commit: string }[]
  /** Has Git LFS files, whose content was fetched. */
  usesLfs: boolean
  /** Null if the file does not exist or is larger than `maxBytes`. */
  text(path: string, maxBytes: number): Promise<string | null>
  read(entries: Iterable<TreeEntry>): AsyncGenerator<FileContent>
  close(): void
}

/** A path of `entries` as UTF-8 text. */
export const asText = (path: string) => Buffer.from(path, 'latin1').toString()
