import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { find } from '../../src/sandbox/programs/tools.ts'
import { required, networkTest as test } from './outside.ts'
import { cleanUp, directory, internet as network, openSandbox, run, searchPath } from './sandboxes.ts'
import { openWorld, texts, told, type World } from './world.ts'

let world: World
beforeAll(async () => {
  if (required) world = await openWorld()
})
afterAll(async () => {
  await cleanUp()
  await world?.close()
})

describe('other reaches', () => {
  const web = (path: string) => `http://${world.outside.address}:${world.outside.webPort}${path}`
  const curl = (url: string) => `curl -sS -m 5 ${url} 2>&1; echo`

  test('registry: listed hosts by the proxy, nothing else and nothing past it', async () => {
    const listed = { reach: 'registry' as const, private: [`${world.outside.address}:${world.outside.webPort}`] }
    const { stdout } = await run(world.sandbox, `${curl(web('/a'))}; ${curl(`http://web.example:1/`)}`, {
      network: listed,
    })
    expect(stdout).toMatch(/^web \/a\nweb\.example:1 is not on the list/)
    const { address, echoPort } = world.outside
    const answers = await told(
      world.sandbox,
      `tcp('${address}', ${echoPort}), udp('${address}', ${echoPort}, 1000)`,
      listed,
    )
    expect(new Set(texts(answers))).toEqual(new Set(['ENETUNREACH']))
    const names = await run(world.sandbox, 'getent hosts web.example || echo unknown', { network: listed })
    expect(names.stdout).toBe('unknown\n')
  })

  test('none: nothing at all', async () => {
    const { address, echoPort, webPort } = world.outside
    const answers = await told(
      world.sandbox,
      `tcp('${address}', ${webPort}), tcp('127.0.0.1', ${world.machinePort}), udp('${address}', ${echoPort}, 1000)`,
      null,
    )
    expect(texts(answers)).toEqual(['ENETUNREACH', 'ECONNREFUSED', 'ENETUNREACH'])
  })

  test('public with a private registry and repository host: npm and git find them, and nothing else inward', async () => {
    const listed = { reach: 'public' as const, private: [`127.0.0.1:${world.machinePort}`] }
    const base = `http://127.0.0.1:${world.machinePort}`
    world.reached.length = 0
    const script = `env | grep -c ^HTTP_PROXY
      npm ping --registry=${base}/npm >/dev/null 2>&1; git ls-remote ${base}/repo.git >/dev/null 2>&1
      ${curl(`${base}/direct`)}
      ${curl(`-x $npm_config_proxy ${web('/proxied')}`)}
      ${curl(`-x $npm_config_proxy http://web.example:${world.outside.webPort}/named`)}
      ${curl(`-x $npm_config_proxy http://machine.example:${world.machinePort}/named`)}
      ${curl(`-x $npm_config_proxy http://${world.outside.machine}:${world.machinePort}/`)}`
    const { stdout } = await run(world.sandbox, script, { network: listed, environment: { HOME: '/tmp' } })
    const [count, direct, proxied, named, ...refused] = stdout.split('\n').filter(Boolean)
    expect([count, proxied, named]).toEqual(['0', 'web /proxied', 'web /named'])
    expect(direct).toContain('curl: (7)')
    expect(refused.join()).toMatch(/machine\.example has no public address.*has no public address/)
    const paths = world.reached.filter((line) => line.startsWith('/'))
    expect(paths.some((path) => path.startsWith('/npm/-/ping'))).toBe(true)
    expect(paths.some((path) => path.startsWith('/repo.git/info/refs'))).toBe(true)
    expect(paths.some((path) => path.startsWith('/direct') || path.startsWith('/named'))).toBe(false)
  })

  test('public without slirp4netns: every public host by the proxy, and a warning that says what to install', async () => {
    const tools = await directory()
    for (const name of ['bwrap', 'npm']) await symlink((await find(name, searchPath))!, join(tools, name))
    const { sandbox } = await openSandbox('bubblewrap', { searchPath: tools, resolvers: [world.upstream.address] })
    expect(sandbox.warning).toContain('apt install slirp4netns')
    const script = `node -e "fetch('http://web.example:${world.outside.webPort}/x').then((answer) => answer.text()).then(console.log)"
      ${curl(`http://machine.example:${world.machinePort}/`)}; ${curl(`http://127.9.9.9:${world.machinePort}/`)}`
    world.reached.length = 0
    const { stdout } = await run(sandbox, script, { network })
    expect(stdout).toMatch(/^web \/x\nmachine\.example has no public address.*\n+127\.9\.9\.9 has no public/)
    expect(world.reached).toEqual([])
  })
})
