import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { recordTypes } from '../../../src/dns/record-types.ts'
import { until } from '../../helpers/until.ts'
import { everyRecord, startWorld, type World } from './world.ts'

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

let world: World
const extra: [string, string, string][] = [['ALIAS', 'flat', 'shop.berth.example']]
beforeAll(async () => {
  world = await startWorld()
  await world.newDomain('full.com')
  for (const [type, name, value] of [...everyRecord, ...extra]) await world.record('full.com', type, name, value)
  const { body } = await world.call('GET', '/dns/full.com/zone/status')
  await until(async () => world.nameserver.snapshot!.table.get('full.com')?.serial === body.serial)
})
afterAll(() => world.stop())

const questions: Record<string, [name: string, expected: string[]]> = {
  A: ['host.full.com', ['192.0.2.2', '192.0.2.3']],
  AAAA: ['full.com', ['2001:db8::1']],
  ALIAS: ['flat.full.com', ['192.0.2.80']],
  CAA: ['full.com', ['0 issue "letsencrypt.org"', '128 iodef "mailto:a@example.net"']],
  CDNSKEY: ['below.full.com', ['0 3 0 AA==']],
  CDS: ['below.full.com', ['0 0 0 00']],
  CERT: ['cert.full.com', [/^(?:1|PKIX) 12345 (?:13|ECDSAP256SHA256) MIIB$/ as unknown as string]],
  CNAME: ['www.full.com', ['host.full.com.']],
  DNAME: ['moved.full.com', ['wild.full.com.']],
  DS: ['cut.full.com', [`12345 13 2 ${'CD'.repeat(32)}`]],
  HINFO: ['hinfo.full.com', ['"PC" "Linux"']],
  HTTPS: ['full.com', ['1 . alpn="h2,h3" ipv4hint=192.0.2.1 ipv6hint=2001:db8::1']],
  LOC: [
    'loc.full.com',
    [/^52 22 23(?:\.000)? N +0?4 53 32(?:\.000)? E +-2(?:\.00)?m +1m +10000m +10m$/ as unknown as string],
  ],
  MX: ['full.com', ['10 mail.full.com.', '20 mx.example.net.']],
  NAPTR: ['naptr.full.com', ['10 20 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .']],
  NS: ['full.com', ['ns1.berth.example.', 'ns2.berth.example.']],
  OPENPGPKEY: ['key.full.com', ['mQINBFUo']],
  PTR: ['ptr.full.com', ['host.full.com.']],
  SMIMEA: ['smime.full.com', [`3 0 1 ${'CD'.repeat(32)}`]],
  SRV: ['_sip._tcp.full.com', ['0 5 5060 sip.full.com.']],
  SSHFP: ['host.full.com', [`4 2 ${'AB'.repeat(32)}`]],
  SVCB: ['_dns.full.com', ['1 dns.full.com. alpn="dot" port=853']],
  TLSA: ['_443._tcp.www.full.com', [`3 1 1 ${'AB'.repeat(32)}`]],
  TXT: ['full.com', ['"v=spf1 -all"', `"${'long '.repeat(51)}" "${'long '.repeat(49)}"`]],
  TYPE65280: ['private.full.com', ['\\# 3 ABCDEF']],
  URI: ['_web.full.com', ['10 1 "https://www.example.com/"']],
  SOA: ['full.com', [/^ns1\.berth\.example\. hostmaster\.full\.com\. \d+ 600 300 604800 60$/ as unknown as string]],
  ANY: ['full.com', ['"RFC8482" ""']],
}

const plain = (line: string) => line.replace(/[" ]/g, '').toUpperCase()

describe.each(['dig', 'kdig'])('%s', (program) => {
  const installed = isInstalled(program)
  test.skipIf(!installed).each(Object.keys(questions))('reads %s from both listeners', async (type) => {
    const [name, expected] = questions[type]!
    for (const port of world.ports) {
      for (const protocol of ['+notcp', '+tcp']) {
        const args = ['@127.0.0.1', '-p', `${port}`, name, type === 'ALIAS' ? 'A' : type, '+short', '+edns', protocol]
        const { stdout } = await run(program, args)
        const lines = stdout.trim().split('\n').sort()
        if (expected.length === 1 && (expected[0] as unknown) instanceof RegExp) {
          expect(lines[0]).toMatch(expected[0]!)
        } else expect(lines.map(plain)).toEqual(expected.map(plain).sort())
      }
    }
  })

  test.skipIf(!installed)('takes NSID and cookies', async () => {
    for (const [index, port] of world.ports.entries()) {
      const args = [
        '@127.0.0.1',
        '-p',
        `${port}`,
        'full.com',
        'SOA',
        '+nsid',
        ...(program === 'dig' ? [] : ['+cookie']),
      ]
      const { stdout } = await run(program, args)
      expect(stdout).toContain(`ns${index + 1}.berth.example`)
      expect(stdout).toMatch(program === 'dig' ? /COOKIE: [0-9a-f]{48} \(good\)/ : /COOKIE: [0-9A-F]{16}/i)
      expect(stdout).toMatch(/flags: qr aa/i)
      expect(stdout).not.toMatch(/WARNING: (?!.*recursion)/i)
    }
  })
})

test('every type of the API is among the questions', () => {
  expect(Object.keys(questions)).toEqual(expect.arrayContaining([...recordTypes]))
})
