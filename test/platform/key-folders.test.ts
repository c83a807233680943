import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createKeyFolder, sweepKeyFolders } from '../../src/platform/files/key-folders.ts'

async function folderOf(pid: number, ageMs = 0): Promise<string> {
  const path = join(tmpdir(), `berth-ssh-${pid}-${Math.random().toString(36).slice(2, 8)}`)
  await mkdir(path)
  await writeFile(join(path, 'key'), 'secret')
  const time = new Date(Date.now() - ageMs)
  await utimes(path, time, time)
  return path
}

test('keys of a process that was killed are removed, and those of others stay', async () => {
  const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 1e6)'], { stdio: 'ignore' })
  const own = await createKeyFolder()
  const before = await folderOf(process.pid, performance.now() + 60_000)
  const theirs = await folderOf(child.pid!)
  await sweepKeyFolders()
  expect([own, before, theirs].map((path) => existsSync(path))).toEqual([true, false, true])
  child.kill('SIGKILL')
  await once(child, 'exit')
  await sweepKeyFolders()
  expect([own, theirs].map((path) => existsSync(path))).toEqual([true, false])
  const old = await folderOf(1, 25 * 3600_000)
  await sweepKeyFolders()
  expect(existsSync(old)).toBe(false)
  await rm(own, { recursive: true })
})
