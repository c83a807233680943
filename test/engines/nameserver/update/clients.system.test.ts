// The programs that people use: nsupdate, and certbot and lego with certificates from Pebble.
import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePorts, isPebbleInstalled, type Pebble, startPebble } from '../../certificates/pebble.ts'
import { isMissing } from '../transfer/world.ts'
import { startUpdates, type UpdateWorld } from './world.ts'

let world: UpdateWorld
let directory: string
beforeAll(async () => {
  world = await startUpdates()
  directory = await mkdtemp(join(tmpdir(), 'berth-clients-'))
})
afterAll(async () => {
  await world?.stop()
  await rm(directory, { recursive: true, force: true })
})

type Ended = { code: number; output: string }

function run(program: string, args: string[], { input = '', environment = {} } = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, HOME: directory, ...environment }
    const child = execFile(program, args, { timeout: 120_000, env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, output: `${stdout}${stderr}` }),
    )
    child.stdin!.end(input)
  })
}

const acme = { names: ['_acme-challenge', '_acme-challenge.*'], types: ['TXT'] }

/** A zone with a key, as the answer that made it has them. */
async function newZone(zone: string, body: object = {}) {
  await world.newDomain(zone)
  const key = await world.newKey(zone, body)
  return { key, keyName: key.name, secret: key.secret.toString('base64') }
}

describe.skipIf(isMissing('nsupdate'))('nsupdate', () => {
  const update = (key: { keyName: string; secret: string } | null, script: string, ...options: string[]) =>
    run('nsupdate', [...options, ...(key ? ['-y', `hmac-sha256:${key.keyName}:${key.secret}`] : [])], {
      input: `server 127.0.0.1 ${world.ports[0]}\n${script}\nsend\n`,
    })

  test('finds the zone itself, over UDP and TCP, and its answers are signed', async () => {
    const key = await newZone('ns-one.com')
    const script = 'update add www.ns-one.com 300 A 192.0.2.1\nupdate add ns-one.com 300 MX 10 mail.ns-one.com.'
    expect(await update(key, script)).toEqual({ code: 0, output: '' })
    expect(await update(key, 'update add t.ns-one.com 60 TXT "a b" "c"', '-v')).toEqual({ code: 0, output: '' })
    expect(await world.recordsOf('ns-one.com')).toEqual([
      '@ MX 10 mail.ns-one.com',
      't TXT "a b" "c"',
      'www A 192.0.2.1',
    ])
    const again =
      'prereq yxrrset www.ns-one.com A 192.0.2.1\nupdate delete www.ns-one.com A\nupdate delete t.ns-one.com'
    expect(await update(key, again)).toEqual({ code: 0, output: '' })
    expect(await world.recordsOf('ns-one.com')).toEqual(['@ MX 10 mail.ns-one.com'])
  })

  test('is told what was wrong', async () => {
    const key = await newZone('ns-two.com', acme)
    const zone = 'zone ns-two.com\n'
    const add = 'update add _acme-challenge.ns-two.com 60 TXT x'
    expect((await update(null, zone + add)).output).toMatch('update failed: REFUSED')
    expect((await update({ ...key, keyName: 'nobody' }, zone + add)).output).toMatch(/NOTAUTH\(BADKEY\)/)
    expect((await update({ ...key, secret: 'AAAA' }, zone + add)).output).toMatch(/BADSIG|tsig verify failure/)
    expect((await update(key, `${zone}update add www.ns-two.com 60 TXT x`)).output).toMatch('update failed: REFUSED')
    expect((await update(key, `${zone}prereq yxdomain a.ns-two.com\n${add}`)).output).toMatch('update failed: NXDOMAIN')
    expect((await update(key, `${zone}prereq yxrrset a.ns-two.com A\n${add}`)).output).toMatch('update failed: NXRRSET')
    expect((await update(key, `zone example.net\nupdate add a.example.net 60 TXT x`)).output).toMatch('NOTAUTH')
    expect(await world.recordsOf('ns-two.com')).toEqual([])
    expect(await update(key, zone + add)).toEqual({ code: 0, output: '' })
    expect((await update(key, `${zone}prereq nxdomain _acme-challenge.ns-two.com\n${add}`)).output).toMatch('YXDOMAIN')
    expect((await update(key, `${zone}prereq nxrrset _acme-challenge.ns-two.com TXT\n${add}`)).output).toMatch(
      'YXRRSET',
    )
  })
})

describe.skipIf(isMissing('certbot', 'lego') || !isPebbleInstalled())('a certificate from Pebble', () => {
  let pebble: Pebble
  beforeAll(async () => {
    const [httpPort] = await freePorts(1)
    pebble = await startPebble({ dnsServer: `127.0.0.1:${world.ports[0]}`, httpPort: httpPort! })
  })
  afterAll(() => pebble?.stop())

  const namesOf = async (file: string) => new X509Certificate(await readFile(file)).subjectAltName?.split(', ').sort()

  test('by certbot with its plugin for RFC 2136, with a key for nothing but challenges', async () => {
    const { keyName, secret } = await newZone('certbot.com', acme)
    const credentials = join(directory, 'credentials.ini')
    const settings = {
      server: '127.0.0.1',
      port: world.ports[0],
      name: `${keyName}.`,
      secret,
      algorithm: 'HMAC-SHA256',
    }
    const lines = Object.entries(settings).map(([name, value]) => `dns_rfc2136_${name} = ${value}\n`)
    await writeFile(credentials, lines.join(''), { mode: 0o600 })
    const places = ['config', 'work', 'logs'].flatMap((name) => [`--${name}-dir`, join(directory, `certbot-${name}`)])
    const { code, output } = await run(
      'certbot',
      [
        ...['certonly', '--non-interactive', '--agree-tos', '-m', 'a@certbot.com', '--server', pebble.directoryUrl],
        ...['--dns-rfc2136', '--dns-rfc2136-credentials', credentials, '--dns-rfc2136-propagation-seconds', '1'],
        ...['-d', 'certbot.com', '-d', '*.certbot.com', '-d', 'www.sub.certbot.com', ...places],
      ],
      { environment: { REQUESTS_CA_BUNDLE: pebble.caFile } },
    )
    expect(code, output).toBe(0)
    expect(await namesOf(join(directory, 'certbot-config/live/certbot.com/cert.pem'))).toEqual([
      'DNS:*.certbot.com',
      'DNS:certbot.com',
      'DNS:www.sub.certbot.com',
    ])
    // It took every challenge away again.
    expect(await world.recordsOf('certbot.com')).toEqual([])
    const events = await world.db.event.groupBy({
      by: ['type'],
      where: { actor: { startsWith: 'key_' } },
      _count: true,
    })
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['dns.record.created', 'dns.record.deleted']))
  }, 150_000)

  test('by lego', async () => {
    const { keyName, secret } = await newZone('lego.com', acme)
    const server = `127.0.0.1:${world.ports[0]}`
    const { code, output } = await run(
      'lego',
      [
        ...[
          '--accept-tos',
          '--email',
          'a@lego.com',
          '--server',
          pebble.directoryUrl,
          '--path',
          join(directory, 'lego'),
        ],
        ...[
          '--dns',
          'rfc2136',
          '--dns.resolvers',
          server,
          '--dns.disable-cp',
          '-d',
          'lego.com',
          '-d',
          '*.lego.com',
          'run',
        ],
      ],
      {
        environment: {
          LEGO_CA_CERTIFICATES: pebble.caFile,
          RFC2136_NAMESERVER: server,
          RFC2136_TSIG_ALGORITHM: 'hmac-sha256.',
          RFC2136_TSIG_KEY: `${keyName}.`,
          RFC2136_TSIG_SECRET: secret,
          RFC2136_SEQUENCE_INTERVAL: '0',
        },
      },
    )
    expect(code, output).toBe(0)
    expect(await namesOf(join(directory, 'lego/certificates/lego.com.crt'))).toEqual(['DNS:*.lego.com', 'DNS:lego.com'])
    expect(await world.recordsOf('lego.com')).toEqual([])
  }, 150_000)
})
