// A commit of the given files, for tests of what is detected.
import type { Source } from '../../../../src/engines/builder/tree/source-tree.ts'

export function treeOf(files: Record<string, string | object>): Source {
  const texts = new Map(
    Object.entries(files).map(([path, content]) => [
      path,
      typeof content === 'string' ? content : JSON.stringify(content),
    ]),
  )
  const entries = [...texts].map(([path, text]) => {
    const entry = { name: Buffer.from(path), kind: 'file' as const, hash: `${path}:${text.length}`, size: text.length }
    return [path, entry] as const
  })
  return {
    directory: '',
    commit: '',
    message: '',
    entries: new Map(entries),
    submodules: [],
    usesLfs: false,
    async text(path, maxBytes) {
      const text = texts.get(path)
      return text === undefined || text.length > maxBytes ? null : text
    },
    async *read() {},
    close() {},
  }
}
