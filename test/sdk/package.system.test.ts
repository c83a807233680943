// The package of the SDK: its size, what it needs of a runtime, and that it works as it is packed.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createContext, runInContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { blocksOf, root } from '../docs/blocks.ts'
import { createDatabase } from '../helpers/database.ts'
import { startProgram } from '../helpers/program.ts'

const run = promisify(execFile)

/** As a page loads it: the SDK and what it depends on, for browsers. */
async function bundle(minify: boolean): Promise<string> {
  const options = { bundle: true, platform: 'browser', format: 'iife', globalName: 'sdk', write: false } as const
  const { outputFiles } = await build({ entryPoints: ['sdk/src/index.ts'], minify, ...options })
  return outputFiles[0]!.text
}

test('the SDK with its dependency has less than 15 KB', async () => {
  const bytes = gzipSync(await bundle(true)).length
  expect(bytes).toBeLessThan(15_000)
  const { dependencies } = JSON.parse(await readFile('sdk/package.json', 'utf8'))
  expect(Object.keys(dependencies)).toEqual(['openapi-fetch'])
})

test('it needs nothing of a runtime but what browsers and edges have', async () => {
  const web = {
    AbortController,
    AbortSignal,
    Blob,
    DOMException,
    FormData,
    Headers,
    Request,
    Response,
    TextDecoderStream,
  }
  const more = { TextDecoder, TextEncoder, URL, URLSearchParams, atob, clearTimeout, crypto, setTimeout }
  const asked: string[] = []
  const fetch = async (request: Request) => {
    asked.push(`${request.method} ${request.url} ${request.headers.get('authorization')}`)
    return Response.json({ events: [], nextCursor: null })
  }
  const context = createContext({ ...web, ...more, fetch })
  runInContext(await bundle(false), context)

  const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
  const body = '{"type":"ticket.created"}'
  const now = new Date()
  const headers = {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('evt_1', now, body),
  }
  Object.assign(context, { request: { body, headers, secret } })
  expect(await runInContext('sdk.verifyWebhook(request)', context)).toEqual({ type: 'ticket.created' })
  const call = `sdk.createBerth({ baseUrl: 'https://berth.test/api', token: 'brt_x' }).get('/events')`
  expect(await runInContext(call, context)).toEqual({ events: [], nextCursor: null })
  expect(asked).toEqual(['GET https://berth.test/api/events Bearer brt_x'])
})

/** Installs the package as its users do, but from files alone: what it depends on is packed here too. */
async function install(directory: string): Promise<void> {
  const pack = async (...what: string[]) => {
    const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', directory, ...what], { cwd: root })
    return stdout.trim().split('\n').pop()!
  }
  const [sdk, ...others] = await Promise.all([
    pack('--workspace', 'sdk'),
    pack('--ignore-scripts', './node_modules/openapi-fetch'),
    pack('--ignore-scripts', './node_modules/openapi-typescript-helpers'),
  ])
  await writeFile(join(directory, 'package.json'), '{"type":"module"}')
  const files = [sdk, ...others].map((file) => `./${file}`)
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...files], { cwd: directory })
}

test('the tour of the README runs with the packed SDK against a running server', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'berth-sdk-'))
  const database = await createDatabase()
  const dataDir = join(directory, 'data')
  const settings = { DATABASE_URL: database.url, DATA_DIR: dataDir }
  const [program] = await Promise.all([startProgram('api,worker,edge,nameserver', settings), install(directory)])
  try {
    await program.ready()
    const [tour] = blocksOf('README.md', 'ts')
    expect(tour!.trimEnd().split('\n').length).toBeLessThanOrEqual(30)
    await writeFile(join(directory, 'tour.ts'), tour!.replace('localhost:3000', `127.0.0.1:${program.ports.PORT}`))
    const token = (await readFile(join(dataDir, 'test-key'), 'utf8')).trim()
    // The installed package has types: the tour is checked against them, by the compiler that most have.
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node']
    const types = ['--typeRoots', join(root, 'node_modules/@types')]
    const checked = run(process.execPath, [compiler, ...flags, ...types, 'tour.ts'], { cwd: directory })
    const env = { PATH: process.env.PATH, BERTH_TOKEN: token }
    const { stdout } = await run(process.execPath, ['tour.ts'], { cwd: directory, env })
    expect(stdout).toMatch(/http:\/\/hello-\w+\.localhost:\d+\n/)
    expect(stdout).toContain('ACTIVE\nhello\ndomain_exists: ')
    expect(stdout).toMatch(/ticket\.created tkt_\w+\n$/)
    expect((await checked.catch((error) => error)).stdout).toBe('')
  } finally {
    await program.stop()
    await database.drop()
    await rm(directory, { recursive: true, force: true })
  }
}, 120_000)
