import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Attack, isProtected, startAttack } from './attacks.ts'

vi.setConfig({ testTimeout: 120_000 })

let attack: Attack
beforeAll(async () => {
  attack = await startAttack()
})
afterAll(() => attack.stop())

const page = 'mkdir -p dist && echo page > dist/index.html'
const show = 'cat .next/cache/* node_modules/ms/index.js .cache/* .astro/* 2>/dev/null; true'

describe.runIf(isProtected)('caches', () => {
  test.each([
    ['folders', 'for f in .next .astro .cache .parcel-cache .svelte-kit .nuxt; do ln -s $CANARY $f; done'],
    ['nested', 'mkdir .next && ln -s $CANARY .next/cache; ln -s $CANARY/node_modules node_modules'],
  ])('take nothing through a link that a build left (%s)', async (name, script) => {
    const first = await attack.build(`save-${name}`, `${show}; ${script}; ${page}`)
    expect(first.state).toBe('READY')
    await attack.deploy(`save-${name}`)
    await attack.expectUntouched()
  })

  test('write nothing through a link that a repository brings', async () => {
    const links = ['.next', '.astro', '.cache', '.parcel-cache', '.svelte-kit', '.nuxt', 'node_modules']
    const fill = links.map((name) => `mkdir -p ${name}/cache; echo poison > ${name}/cache/poison`).join('; ')
    await attack.build('restore', `${fill}; ${page}`)
    await attack.deploy('restore')
    // The same project, whose repository now has links where the cache belongs.
    const project = await attack.platform.api.call('GET', '/projects/restore')
    const files = Object.fromEntries(links.map((name) => [name, { link: attack.canary }]))
    await attack.platform.project('restore-links', { ...files, 'index.html': 'x' })
    await attack.platform.api.db.project.update({
      where: { id: project.body.id },
      data: { repo: 'acme/restore-links', buildCommand: `${page}; ls -la; cat .next/* .cache/* 2>&1; true` },
    })
    const result = await attack.deploy('restore')
    expect(result.state).toBe('READY')
    await attack.expectUntouched()
  })

  test('of npm downloads are of the project alone, and a link in them stays in the sandbox', async () => {
    const script = 'rm -rf /cache/*; ln -s $CANARY /cache/_cacache; echo mine > /cache/mine; mv /cache /cache2; true'
    await attack.build('downloads', `(${script}) 2>/dev/null; ${page}`)
    const second = await attack.build('downloads-other', `ls /cache; ${page}`)
    expect(second.log).not.toContain('mine')
    await attack.deploy('downloads')
    await attack.expectUntouched()
  })

  test('are never in the way of their removal', async () => {
    const deep = `node -e "for (let i = 0; i < 5000; i++) { fs.mkdirSync('d'); process.chdir('d') }"`
    const closed = 'mkdir -p .astro/closed && chmod 0 .astro/closed'
    await attack.build('deep-cache', `mkdir .cache && (cd .cache && ${deep}); ${closed}; ${page}`)
    const id = (await attack.platform.api.call('GET', '/projects/deep-cache')).body.id
    const place = join(attack.platform.api.config.dataDir, 'cache')
    const cached = async () => (await readdir(place).catch((): string[] => [])).includes(id)
    // It is kept after READY, when nobody waits any more.
    await expect.poll(cached).toBe(true)
    expect((await attack.platform.api.call('DELETE', '/projects/deep-cache')).status).toBe(204)
    await expect.poll(cached).toBe(false)
    await expect.poll(() => readdir(join(attack.platform.api.config.dataDir, 'builds'))).toEqual([])
  })
})
