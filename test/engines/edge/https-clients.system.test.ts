import { execFile, execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type BrowserContext, chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../../helpers/until.ts'
import { createAuthority, serveCertificate } from '../../tls/authority.ts'
import { type HttpsWorld, startHttpsWorld } from './https-world.ts'

const run = promisify(execFile)

function areInstalled(...programs: string[]): boolean {
  try {
    for (const program of programs) execFileSync('which', [program])
    return true
  } catch {
    if (process.env.BERTH_REQUIRE_PEERS === '1') throw new Error(`${programs.join(' or ')} is not installed`)
    return false
  }
}

let world: HttpsWorld
let directory: string
let rootFile: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-clients-'))
  world = await startHttpsWorld()
  rootFile = join(directory, 'root.pem')
  await writeFile(rootFile, world.authority.rootPem)
  await world.site('shop', {
    'index.html': '<title>Shop</title><link rel="stylesheet" href="/style.css"><h1>Welcome</h1>',
    'style.css': 'h1 { color: rgb(1, 2, 3) }',
  })
  await world.secure('shop', 'shop.test', ['shop.test', 'www.shop.test'])
  await world.site('foreign', { 'index.html': 'foreign' })
  await world.attach('foreign', 'foreign.test')
  // By an authority that nobody here trusts.
  const stranger = await createAuthority()
  await serveCertificate(world.db, world.vault, 'foreign.test', await stranger.issue(['foreign.test']))
  const untrusted = { rejectUnauthorized: false }
  await until(() =>
    world.handshake('foreign.test', untrusted).then(
      (socket) => socket.destroy(),
      () => null,
    ),
  )
})
afterAll(async () => {
  await world.stop()
  await rm(directory, { recursive: true, force: true })
})

describe.skipIf(!areInstalled('openssl'))('openssl s_client', () => {
  const connect = (...args: string[]) => {
    const target = ['s_client', '-connect', `127.0.0.1:${world.httpsPort}`, '-CAfile', rootFile, '-verify_return_error']
    const started = run('openssl', [...target, ...args])
    started.child.stdin!.end()
    return started.then(
      ({ stdout }) => stdout,
      ({ stderr, stdout }) => `${stdout}${stderr}`,
    )
  }

  test.each(['-tls1_2', '-tls1_3'])('verifies chain and name (%s)', async (version) => {
    const output = await connect('-servername', 'shop.test', '-verify_hostname', 'shop.test', version, '-alpn', 'h2')
    expect(output).toContain('Verify return code: 0 (ok)')
    expect(output).toContain('ALPN protocol: h2')
    expect(output).toMatch(/1 s:.*Test issuer/)
  })

  test('is refused for an unknown name, and without one, before it sees a certificate', async () => {
    const unknown = await connect('-servername', 'unknown.test')
    expect(unknown).toContain('SSL alert number 112')
    const none = await connect('-noservername')
    expect(none).toContain('SSL alert number 40')
    for (const output of [unknown, none]) expect(output).toContain('no peer certificate available')
  })
})

describe.skipIf(!areInstalled('curl'))('curl --cacert', () => {
  const curl = async (host: string, path: string, ...args: string[]) => {
    const places = [`${host}:${world.httpsPort}:127.0.0.1`, `${host}:${world.port}:127.0.0.1`]
    const form = '%{http_version} %{http_code} %{ssl_verify_result}\n'
    const { stdout } = await run('curl', [
      ...['--silent', '--show-error', '--cacert', rootFile, '--write-out', form],
      ...places.flatMap((place) => ['--resolve', place]),
      ...args,
      path.startsWith('http') ? path : `https://${host}:${world.httpsPort}${path}`,
    ])
    return stdout
  }

  test('reads a site over HTTP/2 and HTTP/1.1 with the chain verified, and follows HTTP there', async () => {
    expect(await curl('shop.test', '/')).toMatch(/<h1>Welcome<\/h1>2 200 0\n$/)
    expect(await curl('www.shop.test', '/', '--http1.1')).toMatch(/<h1>Welcome<\/h1>1.1 200 0\n$/)
    const http = `http://shop.test:${world.port}/`
    expect(await curl('shop.test', http, '--location')).toMatch(/<h1>Welcome<\/h1>2 200 0\n$/)
    await expect(curl('foreign.test', '/')).rejects.toMatchObject({ code: 60 })
  })
})

describe.skipIf(!areInstalled('chromium', 'certutil'))('Chromium', () => {
  let browser: BrowserContext
  beforeAll(async () => {
    // Chromium believes what its user put into this database, and nothing here is told to look away.
    const database = join(directory, '.pki/nssdb')
    await mkdir(database, { recursive: true })
    await run('certutil', ['-N', '--empty-password', '-d', `sql:${database}`])
    await run('certutil', ['-A', '-d', `sql:${database}`, '-n', 'root', '-t', 'C,,', '-i', rootFile])
    browser = await chromium.launchPersistentContext(join(directory, 'profile'), {
      executablePath: execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim(),
      headless: true,
      ignoreHTTPSErrors: false,
      env: { ...process.env, HOME: directory },
      args: [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
        ...['--disable-background-networking', '--disable-component-update'],
        '--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      ],
    })
  })
  afterAll(() => browser?.close())

  test('opens a site over HTTP/2 with the chain verified, coming from HTTP, and refuses a foreign chain', async () => {
    const page = await browser.newPage()
    const answer = (await page.goto(`http://shop.test:${world.port}/`))!
    expect(answer.url()).toBe(`https://shop.test:${world.httpsPort}/`)
    expect(await answer.securityDetails()).toMatchObject({ issuer: 'Test issuer', protocol: 'TLS 1.3' })
    expect(await page.title()).toBe('Shop')
    const seen = await page.evaluate(`({
      protocol: performance.getEntriesByType('navigation')[0].nextHopProtocol,
      secure: isSecureContext,
      color: getComputedStyle(document.querySelector('h1')).color,
    })`)
    expect(seen).toEqual({ protocol: 'h2', secure: true, color: 'rgb(1, 2, 3)' })
    const foreign = page.goto(`https://foreign.test:${world.httpsPort}/`)
    await expect(foreign).rejects.toThrow('ERR_CERT_AUTHORITY_INVALID')
    const unknown = page.goto(`https://unknown.test:${world.httpsPort}/`)
    await expect(unknown).rejects.toThrow('ERR_SSL_UNRECOGNIZED_NAME_ALERT')
  })
})
