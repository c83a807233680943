// Commits without files whose hashes are the same in every run, so that test tables can name them in advance.
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'

// The hash of the empty tree.
const emptyTree = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'

function contentOf(message: string): string {
  const who = 't <t@example.com> 1700000000 +0000'
  return `tree ${emptyTree}\nauthor ${who}\ncommitter ${who}\n\n${message}\n`
}

export function commitHash(message: string): string {
  const content = contentOf(message)
  return hash('sha1', `commit ${content.length}\0${content}`)
}

/** Writes these commits into a bare repository, without branches. */
export function writeCommits(bare: string, messages: readonly string[]): void {
  execFileSync('git', ['-C', bare, 'hash-object', '-w', '-t', 'tree', '--stdin'], { input: '' })
  for (const message of messages) {
    execFileSync('git', ['-C', bare, 'hash-object', '-w', '-t', 'commit', '--stdin'], { input: contentOf(message) })
  }
}
