// The examples of README and guides do what the text says.
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSigner } from '../../src/engines/delivery/message.ts'
import { createVault, placeOf } from '../../src/platform/secrets/secrets.ts'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'
import { blocksOf, pages, root } from './blocks.ts'

const run = promisify(execFile)

function isInstalled(program: string): boolean {
  try {
    execFileSync('which', [program])
    return true
  } catch {
    if (process.env.BERTH_REQUIRE_PEERS === '1') throw new Error(`${program} is not installed`)
    return false
  }
}

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-examples-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const sdk = join(root, 'sdk/src/index.ts')

test('every example in TypeScript fits the SDK', async () => {
  const blocks = pages.flatMap((page) => blocksOf(page, 'ts').map((code) => ({ page, code })))
  expect(blocks.length).toBeGreaterThan(12)
  const names = blocks.map(({ page }, index) => `${index}-${page.replaceAll(/\W/g, '-')}.ts`)
  for (const [index, { code }] of blocks.entries()) {
    // What the first block of the guides has made.
    const known = [
      !code.includes('const berth =') && "declare const berth: import('@berth/sdk').Berth",
      !/import .*createBerth/.test(code) && "declare const createBerth: typeof import('@berth/sdk').createBerth",
    ]
    await writeFile(join(directory, names[index]!), [...known.filter(Boolean), 'export {}', code].join('\n'))
  }
  const compilerOptions = {
    noEmit: true,
    typeRoots: [join(root, 'node_modules/@types')],
    paths: { '@berth/sdk': [sdk] },
  }
  const settings = { extends: join(root, 'tsconfig.json'), compilerOptions: { ...compilerOptions, rootDir: '/' } }
  await writeFile(join(directory, 'package.json'), '{"type":"module"}')
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ ...settings, include: ['*.ts'] }))
  await run(process.execPath, [join(root, 'sdk/generate.ts')])
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = await run(process.execPath, [compiler, '-p', directory]).catch((error) => error)
  expect(stdout).toBe('')
}, 60_000)

const secretOf = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`
const body = JSON.stringify({ id: 'evt_1', type: 'deployment.ready', subject: 'dpl_1', data: { state: 'READY ✓' } })

/** The headers that Berth sends with this body. */
function signed(bytes: number[], secondsAgo = 0): Record<string, string> {
  const vault = createVault(Buffer.alloc(32, 7))
  const secrets = bytes.map((byte) => vault.seal(secretOf(byte), placeOf.webhook('whk_1')).toString('base64'))
  const timestamp = String(Math.floor(Date.now() / 1000) - secondsAgo)
  const signature = createSigner(vault)({ webhookId: 'whk_1', secrets }, `evt_1.${timestamp}.${body}`)
  return { 'webhook-id': 'evt_1', 'webhook-timestamp': timestamp, 'webhook-signature': signature }
}

type Receiver = { language: string; program: string; command(code: string): Promise<string[]> }

const receivers: Receiver[] = [
  {
    language: 'ts',
    program: 'node',
    async command(contents) {
      const outfile = join(directory, 'receiver.mjs')
      const stdin = { contents, loader: 'ts' as const, resolveDir: root }
      await build({ stdin, outfile, bundle: true, platform: 'node', format: 'esm', alias: { '@berth/sdk': sdk } })
      return [process.execPath, outfile]
    },
  },
  {
    language: 'python',
    program: 'python3',
    async command(code) {
      await writeFile(join(directory, 'receiver.py'), code)
      return ['python3', join(directory, 'receiver.py')]
    },
  },
  {
    language: 'go',
    program: 'go',
    async command(code) {
      const [source, binary] = [join(directory, 'receiver.go'), join(directory, 'receiver')]
      await writeFile(source, code)
      const env = { PATH: process.env.PATH, HOME: directory, GOFLAGS: '-mod=mod', GO111MODULE: 'off' }
      await run('go', ['build', '-o', binary, source], { env })
      return [binary]
    },
  },
]

describe('the receiver of webhooks', () => {
  for (const { language, program, command } of receivers) {
    test.skipIf(!isInstalled(program))(
      `in ${language} takes what Berth has signed, and nothing else`,
      async () => {
        const code = blocksOf('docs/guides/webhooks.md', language).find((block) => block.includes('WEBHOOK_SECRET'))!
        const [file, ...args] = await command(code)
        const port = await freePort()
        const environment = { PATH: process.env.PATH, PORT: String(port), WEBHOOK_SECRET: secretOf(1) }
        const child: ChildProcess = spawn(file!, args, { env: environment, stdio: ['ignore', 'pipe', 'ignore'] })
        let printed = ''
        child.stdout!.on('data', (chunk) => (printed += chunk))
        try {
          const send = (headers: Record<string, string>, text = body) =>
            fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: text }).then(({ status }) => status)
          await until(() => send({}).catch(() => null), 60_000)
          expect(await send(signed([1]))).toBe(204)
          // During a rotation; the receiver may have the old secret or the new one.
          expect(await send(signed([2, 1]))).toBe(204)
          await until(() => printed === 'deployment.ready dpl_1\n'.repeat(2))
          expect(await send({})).toBe(401)
          expect(await send(signed([2]))).toBe(401)
          expect(await send(signed([1]), body.replace('dpl_1', 'dpl_2'))).toBe(401)
          expect(await send({ ...signed([1]), 'webhook-id': 'evt_2' })).toBe(401)
          expect(await send(signed([1], 600))).toBe(401)
          expect(await send(signed([1], -600))).toBe(401)
          expect(await send({ ...signed([1]), 'webhook-timestamp': 'now' })).toBe(401)
          expect(await send({ ...signed([1]), 'webhook-signature': 'v1,' })).toBe(401)
        } finally {
          child.kill()
          await once(child, 'close')
        }
        expect(printed).toBe('deployment.ready dpl_1\n'.repeat(2))
      },
      120_000,
    )
  }
})
