import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { egressRules, leadsInward, readBoundary, readTarget } from '../../src/sandbox/network/addresses.ts'
import { bubblewrap, bubblewrapTest, cleanUp, limits, run } from './sandboxes.ts'

let server: Server
let port: number
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => response.end(`${request.method} ${request.url} ${request.headers.host} ${body}`))
  }).listen(0, '127.0.0.1')
  port = await new Promise((resolve) => server.on('listening', () => resolve((server.address() as AddressInfo).port)))
})
afterAll(async () => {
  server.close()
  await cleanUp()
})

/** Runs in the sandbox; prints what fetch and a bare CONNECT are answered. */
const fetcher = (url: string, init = '{}') => [
  'node',
  '-e',
  `
  fetch('${url}', ${init}).then(async (response) => console.log(response.status, await response.text()),
    (error) => console.log('failed', error.cause?.code ?? error.cause?.message))`,
]
const getter = (url: string) => [
  'node',
  '-e',
  `const { Agent, get } = require('http')
  get({ port: 43128, path: '${url}', agent: new Agent(), headers: { host: '${new URL(url).host}' } }, (response) => {
    process.stdout.write(response.statusCode + ' ')
    response.pipe(process.stdout)
  })`,
]
const connector = (authority: string) => [
  'node',
  '-e',
  `
  const request = require('http').request({ port: 43128, method: 'CONNECT', path: '${authority}' }).end()
  request.on('connect', (response, socket) => {
    console.log(response.statusCode, response.statusMessage)
    if (response.statusCode !== 200) return socket.destroy()
    socket.write('GET /through HTTP/1.1\\r\\nHost: inside\\r\\nConnection: close\\r\\n\\r\\n')
    socket.pipe(process.stdout)
  })`,
]

/** Node's own fetch takes the proxy when it is told to. */
const nodeFetch = { environment: { NODE_USE_ENV_PROXY: '1' } }
const listed = (...hosts: string[]) => ({ ...nodeFetch, network: { reach: 'registry' as const, private: hosts } })

describe('with a list of allowed hosts', () => {
  bubblewrapTest('an answer that is not HTTP is a 502, and not the end of the server', async () => {
    const odd = createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end('HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n'))
    }).listen(0, '127.0.0.1')
    await once(odd, 'listening')
    const { port: oddPort } = odd.address() as AddressInfo
    const { stdout } = await run(
      await bubblewrap(),
      getter(`http://127.0.0.1:${oddPort}/`),
      listed(`127.0.0.1:${oddPort}`),
    )
    expect(stdout).toMatch(/^502 .*not HTTP/)
    odd.close()
  })

  bubblewrapTest('a listed host answers, by http and through CONNECT', async () => {
    const more = listed(`127.0.0.1:${port}`)
    const sandbox = await bubblewrap()
    expect((await run(sandbox, fetcher(`http://127.0.0.1:${port}/a?b=1`), more)).stdout).toBe(
      `200 GET /a?b=1 127.0.0.1:${port} \n`,
    )
    expect((await run(sandbox, getter(`http://127.0.0.1:${port}/a?b=1`), more)).stdout).toBe(
      `200 GET /a?b=1 127.0.0.1:${port} `,
    )
    const post = fetcher(`http://127.0.0.1:${port}/p`, `{ method: 'POST', body: 'x'.repeat(100000) }`)
    expect((await run(sandbox, post, more)).stdout.length).toBeGreaterThan(100_000)
    const { stdout } = await run(sandbox, connector(`127.0.0.1:${port}`), more)
    expect(stdout).toContain('200 Connection Established')
    expect(stdout).toContain('GET /through inside')
  })

  bubblewrapTest('every other host is refused, and the answer says so', async () => {
    const more = listed('registry.example:443', `localhost:${port + 1}`)
    const sandbox = await bubblewrap()
    const { stdout } = await run(sandbox, getter(`http://127.0.0.1:${port}/`), more)
    expect(stdout).toMatch(/^403 127\.0\.0\.1:\d+ is not on the list/)
    expect((await run(sandbox, connector(`127.0.0.1:${port}`), more)).stdout).toMatch(/^403 .*not on the list/)
    expect((await run(sandbox, connector('registry.example:80'), more)).stdout).toMatch(/^403 .*not on the list/)
    expect((await run(sandbox, connector('registry.example:443'), more)).stdout).toMatch(/^502 .*not found/)
  })

  bubblewrapTest('there is no way past the proxy', async () => {
    const program = `
      const { connect } = require('net')
      for (const host of ['127.0.0.1', '192.0.2.1', '169.254.169.254', 'example.com'])
        connect({ host, port: ${port} }).on('connect', () => console.log('connected'))
          .on('error', (error) => console.log(error.code))`
    const { stdout } = await run(await bubblewrap(), ['node', '-e', program], listed())
    expect(stdout).toMatch(/^((ECONNREFUSED|ENETUNREACH|EAI_AGAIN|ENOTFOUND)\n){4}$/)
  })

  bubblewrapTest('options of the command for Node do not reach the forwarder', async () => {
    const more = { ...listed(), environment: { NODE_OPTIONS: '--require /build/absent.cjs' } }
    expect(await run(await bubblewrap(), 'echo $NODE_OPTIONS', more)).toMatchObject({
      stdout: '--require /build/absent.cjs\n',
      code: 0,
    })
  })

  bubblewrapTest('npm installs from the registry of this machine', async ({ skip }) => {
    const registry = execFileSync('npm', ['config', 'get', 'registry'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
    const answer = await fetch(new URL('is-number', registry), { signal: AbortSignal.timeout(5000) }).catch(() => null)
    if (!answer?.ok) return skip('the registry is not reachable')
    const { hostname, port, protocol } = new URL(registry)
    const result = await run(await bubblewrap(), 'npm install is-number@7.0.0 && ls node_modules', {
      environment: { npm_config_registry: registry, npm_config_audit: 'false', npm_config_fund: 'false' },
      network: { reach: 'registry', private: [`${hostname}:${port || (protocol === 'http:' ? 80 : 443)}`] },
      limits: { ...limits, diskMb: 100, timeoutMs: 20_000 },
    })
    expect(result, result.stderr).toMatchObject({ code: 0, reason: 'exit' })
    expect(result.stdout).toContain('is-number')
  })
})

describe('addresses', () => {
  test('that lead to this machine or its network are known in every disguise', () => {
    const inward = [
      '127.0.0.1',
      '0.0.0.0',
      '10.1.2.3',
      '172.31.0.1',
      '192.168.1.1',
      '169.254.169.254',
      '100.64.0.1',
      '::1',
      '::',
    ]
    const disguised = [
      '::ffff:127.0.0.1',
      '::ffff:a00:1',
      '::7f00:1',
      '64:ff9b::7f00:1',
      '2002:7f00:1::',
      'fd00::1',
      'fe80::1',
    ]
    expect([...inward, ...disguised, 'no address'].filter((address) => !leadsInward(address))).toEqual([])
    expect(['1.1.1.1', '203.0.113.80', '2606:4700::1111', '172.32.0.1'].filter(leadsInward)).toEqual([])
  })

  test('are refused behind every name but a listed one', async () => {
    const inward = { address: '10.0.0.5', family: 4 }
    const outward = { address: '203.0.113.80', family: 4 }
    const own = { address: '198.51.100.7', family: 4 }
    const lookup = async () => [inward, outward, own]
    const rules = (reach: 'public' | 'registry', list: string[], others = lookup) =>
      egressRules({ reach, private: list }, readBoundary([own.address]), { listed: lookup, others })
    const target = { host: 'mirror.example', port: 443 }
    expect(await rules('public', [])(target)).toEqual({ addresses: [outward] })
    expect(await rules('public', [], async () => [inward, own])(target)).toHaveProperty('refused')
    expect(await rules('registry', [])(target)).toHaveProperty('refused')
    for (const reach of ['public', 'registry'] as const) {
      expect(await rules(reach, ['mirror.example'])(target)).toEqual({ addresses: [inward, outward, own] })
      expect(await rules(reach, ['127.0.0.1'])({ host: '127.0.0.1', port: 22 })).toHaveProperty('refused')
    }
    for (const host of ['127.0.0.1', '10.0.0.5', '::1', '::ffff:10.0.0.5', '::ffff:c633:6407', own.address])
      expect(await rules('public', [])({ host, port: 443 }), host).toHaveProperty('refused')
    expect(await rules('public', [])({ host: outward.address, port: 25 })).toEqual({ addresses: [outward] })
  })

  test('are read as host and port, or not at all', () => {
    expect(readTarget('Example.COM:443')).toEqual({ host: 'example.com', port: 443 })
    expect(readTarget('localhost.:80')).toEqual({ host: 'localhost', port: 80 })
    expect(readTarget('[::1]:80')).toEqual({ host: '::1', port: 80 })
    for (const text of ['', ':80', 'a:0', 'a:65536', 'a b:80', 'user@a:80', 'a/b:80', '::1:80', 'a'])
      expect(readTarget(text)).toBeUndefined()
    const { crosses, own } = readBoundary([])
    const rules = () =>
      egressRules({ reach: 'public', private: ['https://a'] }, { crosses, own }, { others: async () => [] })
    expect(rules).toThrow('no host:port')
  })
})
