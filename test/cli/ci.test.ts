// The lines of docs/guides/ci.md, run as a CI service runs them: a shell, the file of /cli, and the identity of a job.
import { execFile, execFileSync } from 'node:child_process'
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { blocksOf } from '../docs/blocks.ts'
import { type Platform, startPlatform } from '../engines/builder/host.ts'
import { type CommandLine, openCommandLine } from '../helpers/command-line.ts'

const run = promisify(execFile)
const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })

function isInstalled(program: string): boolean {
  try {
    execFileSync('which', [program])
    return true
  } catch {
    if (process.env.BERTH_REQUIRE_PEERS === '1') throw new Error(`${program} is not installed`)
    return false
  }
}

let platform: Platform
let cli: CommandLine
let service: Server
let issuer: string
let url: string
let projectId: string
let asked: string[]

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** What the CI service says of a job. */
function identity(audience: string): string {
  const now = Math.floor(Date.now() / 1000)
  const times = { iat: now, exp: now + 300, jti: randomUUID() }
  const claims = { iss: issuer, aud: audience, sub: 'repo:me/site', repository: 'me/site', ...times }
  const signed = `${part({ alg: 'RS256', kid: 'k' })}.${part(claims)}`
  return `${signed}.${sign('sha256', Buffer.from(signed), keys.privateKey).toString('base64url')}`
}

beforeAll(async () => {
  cli = await openCommandLine()
  asked = []
  service = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, issuer)
    asked.push(`${pathname} ${request.headers.authorization ?? ''}`)
    const jwk = { ...keys.publicKey.export({ format: 'jwk' }), kid: 'k', use: 'sig' }
    const answers: Record<string, unknown> = {
      '/keys': { keys: [jwk] },
      '/job': { value: identity(searchParams.get('audience') ?? '') },
    }
    response.end(JSON.stringify(answers[pathname] ?? { issuer, jwks_uri: `${issuer}/keys` }))
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  issuer = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  platform = await startPlatform({ WEBHOOK_ALLOW_PRIVATE: 'true' }, true, { commandLineFile: cli.file })
  const { api } = platform
  url = await api.listen()
  const made = await api.call('POST', '/projects', { body: { name: 'site', framework: 'static' } })
  projectId = made.body.id
  const body = { issuer, audience: url, claims: { repository: 'me/site' } }
  expect((await api.call('PUT', '/projects/site/oidc', { body })).status).toBe(200)
}, 120_000)
afterAll(async () => {
  await platform.stop()
  service.close()
  service.closeAllConnections()
  await cli.remove()
})

const [github, gitlab] = blocksOf('docs/guides/ci.md', 'yaml').map((block) => parse(block))
const lines = {
  'GitHub Actions': github.jobs.deploy.steps.flatMap((step: { run?: string }) => step.run ?? []) as string[],
  'GitLab CI': gitlab.deploy.script as string[],
}

test.skipIf(!isInstalled('curl')).each(Object.entries(lines))(
  '%s deploys by the lines of the guide',
  async (name, commands) => {
    const directory = await mkdtemp(join(tmpdir(), 'berth-job-'))
    try {
      await writeFile(join(directory, 'index.html'), `<h1>${name}</h1>`)
      const identityOf =
        name === 'GitLab CI'
          ? { BERTH_ID_TOKEN: identity(url) }
          : { ACTIONS_ID_TOKEN_REQUEST_URL: `${issuer}/job?x=1`, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of the job' }
      const where = { BERTH_URL: url, BERTH_PROJECT: projectId }
      const env = { PATH: process.env.PATH, HOME: directory, CI: 'true', ...where, ...identityOf }
      expect(commands).toHaveLength(3)
      let last = ''
      for (const command of commands) last = (await run('sh', ['-ec', command], { cwd: directory, env })).stdout
      expect(last).toMatch(/^https?:\/\/site-\S+\n$/)
      const { body } = await platform.api.call('GET', '/deployments?limit=1')
      expect(body.deployments[0]).toMatchObject({ state: 'READY', current: true, source: 'upload' })
      expect(await platform.file(body.deployments[0].id, 'index.html')).toBe(`<h1>${name}</h1>`)
      // Neither the program that was fetched into the folder nor the token that is kept below it is part of the site.
      expect(body.deployments[0].files).toBe(1)
      if (name === 'GitHub Actions') expect(asked).toContain('/job Bearer of the job')
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  },
  120_000,
)
