// `berth serve` in a real terminal: what a person sees of the first start, in which order, and of Ctrl-C.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'

vi.setConfig({ testTimeout: 300_000 })

// util-linux's, which gives a program a terminal.
const hasScript = spawnSync('script', ['--version']).status === 0

let directory: string
const running = new Set<ChildProcess>()
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-terminal-'))
  // Open to the user of PostgreSQL.
  await chmod(directory, 0o711)
})
afterEach(async () => {
  const exits = [...running].map((child) => once(child, 'exit'))
  // Whoever still runs has lost its terminal, and so shuts down with its database.
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(exits)
  await until(() => !execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).includes(directory))
  await rm(directory, { recursive: true, force: true })
})

async function open(environment: Record<string, string> = {}) {
  const port = String(await freePort())
  const child = spawn(
    'script',
    ['-qfec', `exec '${process.execPath}' dist/src/cli.js serve --roles api`, '/dev/null'],
    {
      env: {
        PATH: process.env.PATH,
        TERM: 'xterm',
        DATA_DIR: join(directory, 'data'),
        PORT: port,
        METRICS_PORT: '0',
        ...environment,
      },
    },
  )
  let text = ''
  child.stdout.on('data', (chunk) => (text += chunk))
  running.add(child)
  const exited = once(child, 'exit').then(([code]) => {
    running.delete(child)
    return code as number | null
  })
  return {
    port,
    text: () => text.replaceAll('\r\n', '\n'),
    async ready() {
      await until(() => {
        if (child.exitCode !== null) throw new Error(`ended before it was ready: ${text}`)
        return text.includes('/api/projects')
      }, 90_000)
    },
    async interrupt() {
      child.stdin.write('\x03')
      return exited
    },
  }
}

test.skipIf(!hasScript)('shows a status and short lines, the banner last, and no request after it', async () => {
  const berth = await open()
  await berth.ready()
  const { status } = await fetch(`http://127.0.0.1:${berth.port}/api/projects`)
  expect(status).toBe(401)
  const text = berth.text()
  const statuses = ['Creating the database…', 'Applying migrations…', 'Starting…'].map((one) => text.indexOf(one))
  expect(statuses).toEqual([...statuses].sort((one, other) => one - other))
  expect(statuses).not.toContain(-1)
  expect(text).not.toContain('{"level"')
  expect(text).toContain('\x1b[2m')
  // What was written over is not seen any more.
  const seen = text.split('\n').map((line) => stripVTControlCharacters(line.slice(line.lastIndexOf('\r') + 1)))
  const banner = seen.slice(seen.findIndex((line) => line.startsWith('API ')))
  expect(banner.map((line) => line.slice(0, 9).trimEnd())).toEqual(['API', 'Dashboard', 'Test key', 'Try', ''])
  expect(seen.find((line) => line.includes('Server listening'))).toMatch(/^\d\d:\d\d:\d\d Server listening at /)
  expect(await berth.interrupt()).toBe(0)
})

test.skipIf(!hasScript)('writes JSON where that is asked for', async () => {
  const berth = await open({ LOG_FORMAT: 'json' })
  await berth.ready()
  await until(() => berth.text().includes('{"level":30,'))
  expect(berth.text()).not.toContain('\x1b')
  expect(await berth.interrupt()).toBe(0)
})

test.skipIf(!hasScript)('says in one line that the port is taken', async () => {
  const first = await open()
  await first.ready()
  const second = await open({ PORT: first.port, DATA_DIR: join(directory, 'other') })
  await until(() => second.text().includes('is in use'))
  expect(second.text().trim()).toBe(
    `berth: Port ${first.port} is in use; stop the program that listens there, or change PORT.`,
  )
  expect(await first.interrupt()).toBe(0)
})
