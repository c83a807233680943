import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { request } from 'node:http'
import { networkInterfaces } from 'node:os'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { createConnectionBy } from '../../src/sandbox/network/connect.ts'
import { find } from '../../src/sandbox/programs/tools.ts'
import { until } from '../helpers/until.ts'
import { required, networkTest as test } from './outside.ts'
import { cleanUp, command, internet as network, run, searchPath } from './sandboxes.ts'
import { node, openWorld, PLATFORM, texts, told, type World } from './world.ts'

let world: World
beforeAll(async () => {
  if (required) world = await openWorld()
})
afterAll(async () => {
  await cleanUp()
  await world?.close()
})

describe('the public internet', () => {
  test('is reached by name and by address, over TCP and UDP, without a word about it in the environment', async () => {
    const { address, echoPort, webPort } = world.outside
    const answers = await told(
      world.sandbox,
      `tcp('web.example', ${echoPort}), udp('web.example', ${echoPort}),
      tcp('${address}', ${echoPort}), udp('${address}', ${echoPort}),
      fetch('http://web.example:${webPort}/fetched').then((response) => response.text()).then(said)`,
    )
    expect(texts(answers)).toEqual(['tcp hello', 'udp hello', 'tcp hello', 'udp hello', 'web /fetched'])
    const { stdout } = await run(world.sandbox, 'env; getent ahosts web.example', { network })
    expect(stdout).not.toMatch(/proxy/i)
    expect(stdout).toContain(world.outside.address)
    expect(world.sandbox.warning ?? '').not.toContain('proxy')
  })

  test('is reached by curl', async ({ skip }) => {
    if (!(await find('curl', searchPath))) return skip('curl is not installed')
    const { stdout } = await run(world.sandbox, `curl -sS http://web.example:${world.outside.webPort}/curled`, {
      network,
    })
    expect(stdout).toBe('web /curled')
  })

  test('is reached by a server, and the server by the host', async () => {
    const program = `require('http').createServer(async (request, response) => {
      const answer = await fetch('http://web.example:${world.outside.webPort}' + request.url)
      response.end('server ' + await answer.text())
    }).listen(process.env.PORT, () => console.log('up'))`
    const asked = await command(node(program), { network, listen: {} })
    const started = world.sandbox.run(asked)
    const createConnection = createConnectionBy((await started.connect)!)
    await until(() => asked.output.stdout === 'up\n')
    const [response] = await once(request({ createConnection, path: '/both' }).end(), 'response')
    expect(await text(response)).toBe('server web /both')
    await started.kill()
  })
})

describe('what lies inward is refused at once', () => {
  test('by address, in every disguise, and nothing of it reaches the machine', async () => {
    const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
    const own = interfaces.filter(({ scopeid }) => !scopeid).map(({ address }) => address)
    expect(own).toContain(world.outside.machine)
    const targets = [
      ...['127.0.0.1', '127.9.9.9', '0.0.0.0', '10.0.0.1', '10.0.2.2', '10.0.2.3', '10.0.2.100', '172.16.0.1'],
      ...[
        '192.168.0.1',
        '100.64.0.1',
        '169.254.169.254',
        '192.0.0.1',
        '198.18.0.1',
        '168.63.129.16',
        '224.0.0.1',
        '255.255.255.255',
      ],
      ...['::1', '::', '::ffff:127.0.0.1', '::ffff:10.0.2.2', '::ffff:a9fe:a9fe', 'fe80::1', 'fd00::1', 'ff02::1'],
      ...[`::ffff:${world.outside.machine}`, PLATFORM, '2606:4700::1111', '64:ff9b::7f00:1', ...own],
    ]
    world.reached.length = 0
    const heard: string[] = []
    const listener = createSocket({ type: 'udp6', ipv6Only: false }, (_data, from) => heard.push(from.address))
    listener.bind(world.machinePort)
    await once(listener, 'listening')
    const list = JSON.stringify(targets)
    const answers = await told(
      world.sandbox,
      `...${list}.map((host) => tcp(host, ${world.machinePort})),
      ...${list}.map((host) => udp(host, ${world.machinePort}, 1000))`,
    )
    listener.close()
    expect(answers).toHaveLength(2 * targets.length)
    // Each is said at once. A host that is looked for and not found is EHOSTUNREACH, seconds later.
    const refusals = /^(ECONNREFUSED|EACCES|EPERM|ENETUNREACH|EINVAL|EADDRNOTAVAIL)$/
    for (const [index, target] of targets.entries()) {
      expect(answers[index]!.text, target).toMatch(refusals)
      expect(answers[targets.length + index]!.text, `${target} by UDP`).toMatch(
        new RegExp(`${refusals.source}|^EHOSTUNREACH$|^silence$`),
      )
    }
    expect([...world.reached, ...heard]).toEqual([])
  })

  test('by name: an address that is not public is not even told', async () => {
    const names = ['loopback', 'private', 'mixed', 'machine', 'platform', 'absent'].map((name) => `${name}.example`)
    const program = `
      const { lookup, resolve4, resolve6, resolveAny } = require('dns').promises
      const tell = (promise) => promise.then((found) => JSON.stringify(found), (error) => error.code)
      const names = ${JSON.stringify(names)}
      Promise.all([...names.flatMap((name) => [lookup(name, { all: true }), resolve4(name)]),
        resolve6('web.example'), resolveAny('web.example')].map(tell)).then((all) => console.log(all.join(' ')))`
    const { stdout } = await run(world.sandbox, node(program), { network })
    expect(stdout).toMatch(/^((ENODATA|ENOTFOUND|EAI_AGAIN|EREFUSED|ENOTIMP)\s){14}$/)
  })

  test('by a name that was public a moment before', async () => {
    const program = `(async () => {
      const { resolve4 } = require('dns').promises
      for (let round = 0; round < 3; round++)
        await resolve4('rebinding.example').then((found) => console.log(...found), (error) => console.log(error.code))
    })()`
    const { stdout } = await run(world.sandbox, node(program), { network })
    expect(stdout).toBe(`${world.outside.address}\nENODATA\nENODATA\n`)
  })

  test('while a long answer comes whole, over TCP', async () => {
    const program = `require('dns').promises.resolve4('many.example').then((found) => console.log(found.length))`
    expect((await run(world.sandbox, node(program), { network })).stdout).toBe('60\n')
    expect((await run(world.sandbox, 'getent ahostsv4 many.example | grep -c STREAM', { network })).stdout).toBe('60\n')
  })

  test('in another sandbox too', async () => {
    const listen = `require('net').createServer((socket) => socket.end('theirs')).listen(4444, () => console.log('up'))`
    const other = await command(node(listen), { network })
    const running = world.sandbox.run(other)
    await until(() => other.output.stdout === 'up\n')
    const hosts = ['127.0.0.1', '::1', '10.0.2.100', '10.0.2.15', '10.0.2.2']
    const answers = await told(world.sandbox, hosts.map((host) => `tcp('${host}', 4444)`).join())
    expect(new Set(texts(answers))).toEqual(new Set(['ECONNREFUSED']))
    await running.kill()
  })
})

test('a command cannot change its network', async () => {
  const attempts = [
    ...['/usr/sbin/nft flush ruleset', '/usr/sbin/nft list ruleset', '/usr/sbin/nft delete table inet berth'],
    ...['ip link set tap0 down', 'ip link add name x type dummy', 'ip address add 10.0.2.9/24 dev tap0'],
    ...['ip route add 192.0.2.0/24 dev tap0', 'unshare --net true', 'unshare --user --net true'],
    ...['echo 1 > /proc/sys/net/ipv4/ip_forward', 'echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet'],
    ...['nsenter --net=/proc/1/ns/net true', 'ls /dev/net/tun', 'ls /run'],
  ]
  const script = attempts.map((attempt) => `(${attempt}) >/dev/null && echo '${attempt}'`).join('\n')
  const { stdout, stderr } = await run(world.sandbox, `PATH=$PATH:/usr/sbin\n${script}\necho done`, { network })
  expect(stdout).toBe('done\n')
  expect(stderr.match(/not permitted/gi)!.length).toBeGreaterThan(5)
  expect(stderr).not.toContain('not found')
})
