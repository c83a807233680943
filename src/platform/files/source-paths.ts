// Checks the paths of files to be built: plain names below one root, none of which git or a site could misread.
import { createPauses } from '../pauses.ts'

const maxPathBytes = 1024
const maxNameBytes = 255
const maxDepth = 64

/** Some file systems ignore these code points in names, so `.git` could be spelled in many ways. */
const ignored = /[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u00ad]/g

/** Printable ASCII has a single form, and no system ignores any of it. */
const ascii = /^[\x20-\x7e]*$/
const dotGit = /(?:^|\/)(?:\.git|git~\d+)[ .]*(?:\/|$)/i

const normalOf = (path: string) => (ascii.test(path) ? path : path.normalize('NFC'))

function isInGit(part: string): boolean {
  const plain = part
    .replace(ignored, '')
    .normalize('NFKC')
    .replace(/[ .]+$/, '')
    .toLowerCase()
  return plain === '.git' || /^git~\d+$/.test(plain)
}

/** What is wrong with a path; null if it is valid. */
export function pathRefusal(path: string): string | null {
  const isAscii = ascii.test(path)
  if (!isAscii && !path.isWellFormed()) return 'is not UTF-8'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (!isAscii && /[\x00-\x1f\x7f]/.test(path)) return 'has a control character'
  if ((isAscii ? path.length : Buffer.byteLength(path)) > maxPathBytes) return `is longer than ${maxPathBytes} bytes`
  if (path.startsWith('/')) return 'is absolute'
  const parts = path.split('/')
  if (parts.length > maxDepth) return `is more than ${maxDepth} folders deep`
  for (const part of parts) {
    if (part === '' || part === '.' || part === '..') return 'has an empty, `.` or `..` segment'
    const bytes = isAscii ? part.length : Buffer.byteLength(part)
    if (bytes > maxNameBytes) return `has a name longer than ${maxNameBytes} bytes`
  }
  return (isAscii ? dotGit.test(path) : parts.some(isInGit)) ? 'is inside a .git folder, which is never uploaded' : null
}

export type PathFault = { index: number; why: string; repeated: boolean }

/** What is wrong with the paths of a tree, each alone and compared with the others; at max `max` faults. */
export async function pathFaults(paths: readonly string[], max: number): Promise<PathFault[]> {
  const pauses = createPauses()
  const faults: PathFault[] = []
  const seen = new Set<string>()
  for (const [index, path] of paths.entries()) {
    if (faults.length >= max) return faults
    const pause = pauses()
    if (pause) await pause
    const why = pathRefusal(path)
    if (why !== null) {
      faults.push({ index, why, repeated: false })
      continue
    }
    // Names that only differ in their Unicode form are one file on other systems, and look the same to visitors.
    const normal = normalOf(path)
    if (seen.has(normal)) faults.push({ index, why: 'appears twice', repeated: true })
    else seen.add(normal)
  }
  const folders = new Set<string>()
  for (const [index, path] of paths.entries()) {
    if (faults.length >= max) return faults
    const pause = pauses()
    if (pause) await pause
    const normal = normalOf(path)
    const above: string[] = []
    let isInFile = false
    for (let at = normal.lastIndexOf('/'); at > 0 && !isInFile; at = normal.lastIndexOf('/', at - 1)) {
      const folder = normal.slice(0, at)
      // Neither this folder nor those above it are files.
      if (folders.has(folder)) break
      isInFile = seen.has(folder)
      above.push(folder)
    }
    if (isInFile) faults.push({ index, why: 'is inside a path that is also listed as a file', repeated: true })
    else for (const folder of above) folders.add(folder)
  }
  return faults
}

/** Whether a link at `path` stays below the root. */
export function staysInside(path: string, target: string): boolean {
  if (target.startsWith('/') || target.includes('\0') || target === '') return false
  let depth = path.split('/').length - 1
  for (const part of target.split('/')) {
    if (part === '..') depth--
    else if (part !== '' && part !== '.') depth++
    if (depth < 0) return false
  }
  return true
}
