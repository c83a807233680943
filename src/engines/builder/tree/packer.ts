// The program that reads the tree after a build, in its own sandbox with a read-only tree.

/** The kinds of entries in its output, as numbers on the wire. */
export const entryKinds = { output: 1, directory: 2, file: 3, executable: 4, link: 5, refused: 6, missing: 7, end: 8 }

/** Kind, length of the name, length of the content. */
export const entryHeaderBytes = 13

export type PackerPlan = {
  /** The project's root directory, relative to the tree. */
  root: string
  /** Candidate directories, relative to the root directory; the first match wins. */
  candidates: { path: string; needsIndex: boolean }[]
  /** Names to leave out, at any depth. */
  without: string[]
}

/**
 * Plain JavaScript, because it isn't part of the compiled program. Its output is untrusted, since a crafted tree may
 * deceive it.
 */
export const PACKER = `
const fs = require('node:fs')
const { join, sep } = require('node:path')
const kinds = ${JSON.stringify(entryKinds)}
// Comes when the tree is as the build left it.
const plan = JSON.parse(fs.readFileSync(0, 'utf8'))
const tree = fs.realpathSync(process.cwd())
const without = new Set(plan.without)
const maxBuffered = 1 << 18
let waiting = []
let waitingBytes = 0

function flush() {
  let rest = Buffer.concat(waiting, waitingBytes)
  waiting = []
  waitingBytes = 0
  while (rest.length > 0) {
    try {
      rest = rest.subarray(fs.writeSync(1, rest))
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    }
  }
}

function send(bytes) {
  waiting.push(bytes)
  waitingBytes += bytes.length
  if (waitingBytes >= maxBuffered) flush()
}

function head(kind, name, size) {
  const header = Buffer.alloc(${entryHeaderBytes})
  header.writeUInt8(kind, 0)
  header.writeUInt32BE(name.length, 1)
  header.writeBigUInt64BE(BigInt(size), 5)
  send(header)
  send(name)
}

function entry(kind, name, content) {
  const bytes = Buffer.from(content)
  head(kind, name, bytes.length)
  send(bytes)
}

function file(path, name) {
  let fd
  try {
    fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK)
  } catch (error) {
    return entry(kinds.refused, name, 'cannot be read (' + error.code + ')')
  }
  try {
    const { size, mode } = fs.fstatSync(fd)
    head(mode & 0o111 ? kinds.executable : kinds.file, name, size)
    for (let left = size; left > 0; ) {
      const chunk = Buffer.allocUnsafe(Math.min(left, 1 << 20))
      const read = fs.readSync(fd, chunk, 0, chunk.length, null)
      if (read === 0) throw new Error('a file became shorter')
      send(chunk.subarray(0, read))
      left -= read
    }
  } finally {
    fs.closeSync(fd)
  }
}

const slash = Buffer.from('/')

function walk(base) {
  const folders = [Buffer.alloc(0)]
  while (folders.length > 0) {
    const folder = folders.pop()
    const path = Buffer.concat([base, folder])
    let found
    try {
      found = fs.readdirSync(path, { withFileTypes: true, encoding: 'buffer' })
    } catch (error) {
      entry(kinds.refused, folder, 'cannot be read (' + error.code + ')')
      continue
    }
    for (const one of found) {
      if (without.has(one.name.toString())) continue
      const name = Buffer.concat([folder, one.name])
      const full = Buffer.concat([base, name])
      if (one.isDirectory()) {
        head(kinds.directory, name, 0)
        folders.push(Buffer.concat([name, slash]))
      } else if (one.isFile()) file(full, name)
      else if (one.isSymbolicLink()) entry(kinds.link, name, fs.readlinkSync(full, { encoding: 'buffer' }))
      else entry(kinds.refused, name, 'is neither a file nor a folder')
    }
  }
}

function directoryAt(path) {
  try {
    const real = fs.realpathSync(path)
    return fs.statSync(real).isDirectory() ? real : null
  } catch {
    return null
  }
}

function main() {
  const root = join(tree, plan.root)
  for (const { path, needsIndex } of plan.candidates) {
    const real = directoryAt(join(root, path))
    if (real === null) continue
    if (real !== tree && !real.startsWith(tree + sep)) return entry(kinds.refused, Buffer.from(path), 'leads out of the project')
    if (needsIndex && !fs.existsSync(join(real, 'index.html'))) continue
    entry(kinds.output, Buffer.from(path), real)
    return walk(Buffer.from(real + sep))
  }
  const seen = directoryAt(root) === null ? [] : fs.readdirSync(root).slice(0, 200)
  entry(kinds.missing, Buffer.alloc(0), seen.join('\\0').slice(0, 3000))
}

main()
head(kinds.end, Buffer.alloc(0), 0)
flush()
`
