// Knot, BIND and NSD as secondaries, with the configurations of deploy/ on ports of the loopback.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../../helpers/ports.ts'
import { until } from '../../../helpers/until.ts'
import { isMissing, keyArgument, keyName, type Peer, run, secret, startPeer, startWorld, type World } from './world.ts'

const deploy = (name: string) => readFile(join(import.meta.dirname, '../../../../deploy', name), 'utf8')

/** Every one of these must be in the file: otherwise it is not the file that is tested. */
function replaced(text: string, pairs: [string, string][]): string {
  return pairs.reduce((before, [from, to]) => {
    if (!before.includes(from)) throw new Error(`there is no ${from}`)
    return before.replaceAll(from, to)
  }, text)
}

const placeholder = 'REPLACE+WITH+THE+SECRET+OF+NAMESERVER+TSIG='
const ask = (port: number, type: string, name: string) =>
  run('kdig', ['@127.0.0.1', '-p', String(port), '+retry=0', '+time=1', '+short', type, name])
const status = (port: number, name: string) =>
  run('kdig', ['@127.0.0.1', '-p', String(port), '+retry=0', '+time=1', 'SOA', name])

describe.skipIf(isMissing('knotd', 'kdig'))('Knot', () => {
  let world: World
  let knot: Peer
  let port: number

  beforeAll(async () => {
    port = await freePort()
    world = await startWorld([`127.0.0.1:${port}`])
    await world.addDomain('before.dev')
    await world.settled('before.dev')
    const text = await deploy('knot.conf')
    knot = await startPeer(
      'knotd',
      (directory) => ['-c', join(directory, 'knot.conf')],
      (directory) => ({
        'knot.conf': replaced(text, [
          ['[ 0.0.0.0@53, ::@53 ]', `127.0.0.1@${port}`],
          ['    user: knot:knot\n', ''],
          ['"/run/knot"', `"${directory}"`],
          ['"/var/lib/knot"', `"${directory}"`],
          ['target: syslog', 'target: stderr'],
          ['192.0.2.1@5300', `127.0.0.1@${world.port}`],
          ['192.0.2.1', '127.0.0.1'],
          ['transfer.berth.test', keyName],
          [placeholder, secret],
        ]),
      }),
    )
  })
  afterAll(async () => {
    await knot?.stop()
    await world?.stop()
  })

  test('answers for the domains that were there before it', async () => {
    await until(async () => (await ask(port, 'A', 'www.before.dev')) === '127.0.0.1\n')
  })

  test('answers for a domain that is made through the API, with no touch', async () => {
    await world.addDomain('after.dev')
    await until(async () => (await ask(port, 'A', 'after.dev')) === '127.0.0.1\n').catch((error) => {
      throw new Error(`${error}\n${knot.output()}`)
    })
  })

  test('has a record that is made or deleted at once, by NOTIFY and IXFR', async () => {
    let last = ''
    for (let index = 0; index < 5; index++) {
      last = await world.addRecord('after.dev', 'A', `n${index}`, '192.0.2.55')
      await until(async () => (await ask(port, 'A', `n${index}.after.dev`)) === '192.0.2.55\n')
    }
    await world.api.call('DELETE', `/dns/after.dev/records/${last}`)
    await until(async () => (await ask(port, 'A', 'n4.after.dev')) === '')
    expect(knot.output()).toMatch(/after\.dev\.\] IXFR, incoming.*finished/)
    expect(knot.output()).not.toMatch(/after\.dev\.\] IXFR.*(failed|fallback)/)
  })

  test('has every record of a burst of changes', async () => {
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => world.addRecord('after.dev', 'TXT', 'burst', `"number ${index}"`)),
    )
    await until(async () => (await ask(port, 'TXT', 'burst.after.dev')).match(/^"/gm)?.length === 30)
    const serial = await world.settled('after.dev')
    expect(await ask(port, 'SOA', 'after.dev')).toContain(` ${serial} `)
  })

  test('forgets a domain that is deleted, and starts anew with one that is made again', async () => {
    const gone = await world.api.call('DELETE', '/domains/after.dev')
    expect(gone.status).toBe(204)
    await until(async () => /REFUSED/.test(await status(port, 'after.dev')))
    await world.addDomain('after.dev')
    const first = `ns1.berth.test. hostmaster.after.dev. ${await world.settled('after.dev')} `
    await until(async () => (await ask(port, 'SOA', 'after.dev')).startsWith(first))
    expect(await ask(port, 'A', 'n1.after.dev')).toBe('')
  })

  test('forgets a name that a second account claims, is refused its transfer, and has the zone of who proves it', async () => {
    const { api } = world
    const other = await api.newAccount()
    await api.call('POST', '/projects', { body: { name: 'rival', repo: 'test/site' }, token: other.token })
    await world.addDomain('contested.dev')
    await world.addRecord('contested.dev', 'A', '@', '192.0.2.1')
    await until(async () => (await ask(port, 'A', 'contested.dev')) === '192.0.2.1\n')
    const body = { project: 'rival', name: 'contested.dev' }
    expect((await api.call('POST', '/domains', { body, token: other.token })).status).toBe(201)
    await until(async () => /REFUSED/.test(await status(port, 'contested.dev')))
    expect(await world.kdig('-y', keyArgument, 'AXFR', 'contested.dev')).toMatch(/NOTAUTH/)
    expect(await world.kdig('-y', keyArgument, 'AXFR', 'catalog.berth.invalid')).not.toContain('contested.dev')
    const record = { type: 'A', name: '@', value: '192.0.2.2' }
    await api.call('POST', '/dns/contested.dev/records', { body: record, token: other.token })
    await api.db.domain.updateMany({
      where: { name: 'contested.dev', accountId: other.accountId },
      data: { verified: true },
    })
    await until(async () => (await ask(port, 'A', 'contested.dev')) === '192.0.2.2\n')
  })

  test('has other nameservers of a claim by IXFR', async () => {
    await world.addDomain('moved.dev')
    await until(async () => (await ask(port, 'NS', 'moved.dev')).includes('ns1.berth.test'))
    await world.api.db.domain.updateMany({
      where: { name: 'moved.dev' },
      data: { nameservers: ['ns3.berth.test', 'ns4.berth.test'], serial: { increment: 1 } },
    })
    await until(async () => {
      const found = (await ask(port, 'NS', 'moved.dev')).split('\n').filter(Boolean).sort()
      return String(found) === 'ns3.berth.test.,ns4.berth.test.'
    })
    expect(knot.output()).toMatch(/moved\.dev\.\] IXFR, incoming.*finished/)
  })
})

describe.skipIf(isMissing('named', 'kdig'))('BIND', () => {
  let world: World
  let bind: Peer
  let port: number

  beforeAll(async () => {
    port = await freePort()
    world = await startWorld([`127.0.0.1:${port}`])
    await world.addDomain('before.dev')
    await world.settled('before.dev')
    const text = await deploy('bind.conf')
    bind = await startPeer(
      'named',
      (directory) => ['-g', '-n', '1', '-c', join(directory, 'named.conf')],
      (directory) => ({
        'named.conf': replaced(text, [
          ['listen-on port 53 { any; }', `listen-on port ${port} { 127.0.0.1; }`],
          ['listen-on-v6 port 53 { any; }', `listen-on-v6 { none; };\n    pid-file none;\n    session-keyfile none`],
          ['"/var/cache/bind"', `"${directory}"`],
          ['192.0.2.1 port 5300', `127.0.0.1 port ${world.port}`],
          ['transfer.berth.test', keyName],
          [placeholder, secret],
        ]),
      }),
    )
  })
  afterAll(async () => {
    await bind?.stop()
    await world?.stop()
  })
  const has = (type: string, name: string, wanted: string) =>
    until(async () => (await ask(port, type, name)) === wanted).catch((error) => {
      throw new Error(`${error}\n${bind.output()}`)
    })

  test('has domains and records by the catalog, with no touch, and loses those that are deleted', async () => {
    await has('A', 'www.before.dev', '127.0.0.1\n')
    await world.addDomain('after.dev')
    await has('A', 'after.dev', '127.0.0.1\n')
    await world.addRecord('before.dev', 'A', 'new', '192.0.2.55')
    await has('A', 'new.before.dev', '192.0.2.55\n')
    expect((await world.api.call('DELETE', '/domains/after.dev')).status).toBe(204)
    await until(async () => /REFUSED/.test(await status(port, 'after.dev')))
  })
})

describe.skipIf(isMissing('nsd', 'kdig'))('NSD', () => {
  let world: World
  let nsd: Peer
  let port: number

  beforeAll(async () => {
    port = await freePort()
    world = await startWorld([`127.0.0.1:${port}`])
    await world.addDomain('named.dev')
    await world.settled('named.dev')
    const text = await deploy('nsd.conf')
    nsd = await startPeer(
      'nsd',
      (directory) => ['-d', '-c', join(directory, 'nsd.conf')],
      (directory) => ({
        'nsd.conf': replaced(text, [
          ['ip-address: 0.0.0.0@53\n', `ip-address: 127.0.0.1@${port}\n`],
          ['    ip-address: ::0@53\n', ''],
          ['username: "nsd"', 'username: ""'],
          ['"/var/lib/nsd', `"${directory}`],
          ['"/run/nsd', `"${directory}`],
          ['"/tmp"', `"${directory}"`],
          ['192.0.2.1@5300', `127.0.0.1@${world.port}`],
          ['192.0.2.1', '127.0.0.1'],
          ['transfer.berth.test', keyName],
          [placeholder, secret],
          ['name: "example.com"', 'name: "named.dev"'],
        ]),
      }),
    )
  })
  afterAll(async () => {
    await nsd?.stop()
    await world?.stop()
  })

  test('answers for a zone that it names, and has its changes by NOTIFY', async () => {
    await until(async () => (await ask(port, 'A', 'www.named.dev')) === '127.0.0.1\n').catch((error) => {
      throw new Error(`${error}\n${nsd.output()}`)
    })
    await world.addRecord('named.dev', 'A', 'new', '192.0.2.66')
    await until(async () => (await ask(port, 'A', 'new.named.dev')) === '192.0.2.66\n').catch((error) => {
      throw new Error(`${error}\n${nsd.output()}`)
    })
  })
})
