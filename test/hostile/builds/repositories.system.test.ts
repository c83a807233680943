import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { scripts } from '../../engines/builder/host.ts'
import { createRepository } from '../../helpers/repository.ts'
import { type Attack, isProtected, startAttack } from './attacks.ts'

vi.setConfig({ testTimeout: 120_000 })

let attack: Attack
/** A service of this machine that nothing of a build may reach. */
let service: Server
let port: number
const reached: string[] = []
beforeAll(async () => {
  attack = await startAttack()
  service = createServer((request, response) => response.end(request.url))
  service.on('connection', (socket) => reached.push(`${socket.remoteAddress}`))
  service.listen(0, '::')
  await once(service, 'listening')
  port = (service.address() as AddressInfo).port
})
afterAll(async () => {
  service.close()
  await attack.stop()
})

const page = 'mkdir -p dist && echo page > dist/index.html'

describe.runIf(isProtected)('a repository', () => {
  test('has no hook, filter or setting of git run on the host or by the checkout', async () => {
    const evil = `touch ${attack.canary}/hooked; echo hooked > hooked.txt`
    const files = {
      '.gitattributes': '* filter=evil diff=evil\n',
      '.gitconfig': `[core]\n\thooksPath = hooks\n\tfsmonitor = ./evil\n[filter "evil"]\n\tsmudge = ${evil}\n`,
      'hooks/post-checkout': `#!/bin/sh\n${evil}\n`,
      evil: `#!/bin/sh\n${evil}\n`,
      '.lfsconfig': `[lfs]\n\turl = http://127.0.0.1:${port}/lfs\n`,
    }
    const result = await attack.build('git-settings', `ls hooked.txt 2>/dev/null; git status --short; ${page}`, {
      files,
    })
    expect(result.state).toBe('READY')
    expect(result.log).not.toMatch(/^build: (hooked\.txt|fatal)/m)
    expect(reached).toEqual([])
    await attack.expectUntouched(result)
  })

  test.each([
    ['ext', `ext::sh -c touch% $CANARY/ext`, 'is not a repository URL'],
    ['file', 'file:///etc', 'is not a repository URL'],
    // Git itself refuses the commit.
    ['option', '--upload-pack=touch', 'could not be cloned'],
    ['inward', 'http://127.0.0.1:$PORT/x.git', 'submodules are only cloned from'],
    ['metadata', 'http://169.254.169.254/latest', 'submodules are only cloned from'],
  ])('has no submodule cloned from elsewhere (%s)', async (name, address, reason) => {
    const url = address.replace('$CANARY', attack.canary).replace('$PORT', String(port))
    const commit = await createRepository(attack.platform.repositories, `acme/module-${name}`)
    const modules = `[submodule "m"]\n\tpath = m\n\turl = ${url}\n`
    const files = { 'index.html': 'x', '.gitmodules': modules }
    await createRepository(attack.platform.repositories, `acme/sub-${name}`, files, { submodules: { m: commit } })
    await attack.platform.api.call('POST', '/projects', { body: { name: `sub-${name}`, repo: `acme/sub-${name}` } })
    const result = await attack.deploy(`sub-${name}`)
    expect(result).toMatchObject({ state: 'ERROR', error: { code: 'clone_failed' } })
    expect(result.error!.message).toContain(reason)
    expect(reached).toEqual([])
    await attack.expectUntouched(result)
  })

  test('has npm use the registry of this installation, whatever its .npmrc says, and nothing inward', async () => {
    const files = {
      '.npmrc': `registry=http://127.0.0.1:${port}/\nproxy=http://127.0.0.1:${port}\ncache=${attack.canary}\nprefix=${attack.canary}\n`,
      'package.json': scripts({ build: `npm ping 2>&1 | head -5; npm config get registry; ${page}` }),
    }
    await attack.platform.project('npmrc', files, { framework: 'vite' })
    const result = await attack.deploy('npmrc')
    expect(result.state).toBe('READY')
    expect(result.log).not.toMatch(new RegExp(`^build: http://127.0.0.1:${port}`, 'm'))
    expect(reached).toEqual([])
    await attack.expectUntouched(result)
  })

  test('finds no way inward through the proxy that leads to a private repository host', async () => {
    const targets = [
      ...[`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`, `[::ffff:127.0.0.1]:${port}`, `0.0.0.0:${port}`],
      ...[`2130706433:${port}`, `0x7f000001:${port}`, `127.1:${port}`, '10.0.0.1:80', '169.254.169.254:80'],
    ]
    const program = `
      const net = require('node:net')
      const proxy = new URL(process.env.npm_config_proxy || process.env.HTTP_PROXY)
      const ask = (text) => new Promise((resolve) => {
        const socket = net.connect(proxy.port, proxy.hostname, () => socket.write(text))
        socket.once('data', (data) => { resolve(String(data).split('\\r\\n')[0]); socket.destroy() })
        socket.on('error', (error) => resolve(error.code)).on('close', () => resolve('closed'))
      })
      void (async () => {
        for (const target of ${JSON.stringify(targets)}) {
          console.log('CONNECT ' + target + ' = ' + await ask('CONNECT ' + target + ' HTTP/1.1\\r\\nhost: ' + target + '\\r\\n\\r\\n'))
          console.log('GET ' + target + ' = ' + await ask('GET http://' + target + '/ HTTP/1.1\\r\\nhost: ' + target + '\\r\\n\\r\\n'))
        }
      })()`
    const files = { 'proxy.js': program }
    const settings = { buildCommand: `node proxy.js; ${page}` }
    const result = await attack.build('proxy', '', { files, body: { settings } })
    expect(result.state).toBe('READY')
    const told = result.log.split('\n').filter((line) => / = /.test(line))
    expect(told).toHaveLength(2 * targets.length)
    for (const line of told) expect(line).toMatch(/ = HTTP\/1\.1 (400|403|502) /)
    expect(reached).toEqual([])
  })
})
