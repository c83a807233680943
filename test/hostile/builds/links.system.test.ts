import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Attack, isProtected, startAttack } from './attacks.ts'

vi.setConfig({ testTimeout: 120_000 })

let attack: Attack
beforeAll(async () => {
  attack = await startAttack({ BUILD_CONCURRENCY: '5' })
})
afterAll(() => attack.stop())

const page = 'mkdir -p dist && echo page > dist/index.html'

// Side by side: each has a project of its own.
describe.runIf(isProtected)('links that a build leaves', { concurrent: true }, () => {
  test('in place of its own source directory lead nowhere', async () => {
    const swap =
      'mv /build /old; ln -s $CANARY /build; cd /; rm -rf /build; mv /build/* /tmp; ln -s $CANARY /build/dist'
    const result = await attack.build('swap', `(${swap}) 2>/dev/null; true`)
    expect(result).toMatchObject({ state: 'ERROR', error: { code: 'output_missing' } })
    await attack.expectUntouched()
  })

  test.each([
    ['output', `ln -s $CANARY dist`],
    ['output-parent', `ln -s $CANARY/.. up && ln -s up/$(basename $CANARY) dist`],
    ['output-proc', 'ln -s /proc/1/root/etc dist'],
  ])('as output directory are refused (%s)', async (name, script) => {
    const result = await attack.build(name, script)
    expect(result.state).toBe('ERROR')
    expect(result.error!.code).toMatch(/^output_(missing|unsafe)$/)
    await attack.expectUntouched()
  })

  test('to a directory of the sandbox itself are told from the project', async () => {
    const result = await attack.build('output-etc', 'ln -s /etc dist')
    expect(result).toMatchObject({ state: 'ERROR', error: { code: 'output_unsafe' } })
    expect(result.error!.message).toContain('dist leads out of the project')
  })

  test.each([
    ['file', 'ln -s $CANARY/secret.txt dist/a.txt', 'a.txt'],
    ['deep', 'mkdir -p dist/b/c && ln -s $CANARY dist/b/c/d', 'b/c/d'],
    ['chain', 'ln -s $CANARY dist/z && ln -s z/secret.txt dist/a.txt', ''],
    ['above', 'ln -s ../readme.txt dist/a.txt', 'a.txt'],
  ])('inside the output are refused by name (%s)', async (name, script, path) => {
    const result = await attack.build(`inside-${name}`, `${page} && ${script}`)
    expect(result).toMatchObject({ state: 'ERROR', error: { code: 'output_unsafe' } })
    expect(result.error!.message).toContain(`${path} is a link that points outside the output directory`)
    expect(result.files).toEqual([])
    await attack.expectUntouched()
  })

  test('in place of the root directory lead nowhere', async () => {
    const script = 'cd /build && rm -rf packages && mkdir packages && ln -s $CANARY packages/site'
    await attack.platform.project(
      'root',
      { 'packages/site/x': '' },
      {
        framework: 'vite',
        settings: { rootDirectory: 'packages/site', buildCommand: `CANARY=${attack.canary}; ${script}` },
      },
    )
    expect(await attack.deploy('root')).toMatchObject({ state: 'ERROR', error: { code: 'output_missing' } })
    await attack.expectUntouched()
  })

  test('are not swapped while the output is read: nothing of the build lives by then', async () => {
    const racer = 'while :; do ln -sfn $CANARY/secret.txt dist/a; ln -sfn index.html dist/a; done'
    const result = await attack.build('race', `${page}; (setsid nohup sh -c '${racer}' >/dev/null 2>&1 &); sleep 0.3`)
    // Whichever of the two it was when the build ended.
    if (result.state === 'READY') expect(result.files).toEqual(['a', 'index.html'])
    else expect(result.error!.code).toMatch(/^output_(unsafe|missing)$/)
    await attack.expectUntouched()
  })

  test('that are harmless are followed, those to folders once', async () => {
    const script =
      'mkdir -p dist/real && echo one > dist/real/one.txt && ln -s real dist/again && ln -s real/one.txt dist/two.txt && ln -s . dist/self && ln -s /build/dist/real dist/absolute'
    const { files, state } = await attack.build('harmless', `${page} && ${script}`)
    expect(state).toBe('READY')
    expect(files).toEqual(expect.arrayContaining(['again/one.txt', 'absolute/one.txt', 'two.txt', 'self/index.html']))
    expect(files.filter((path) => path.includes('self/self'))).toEqual([])
  })

  test('of another kind: hard links are files, and reach nothing outside', async () => {
    const script = `ln dist/index.html dist/twin.html; (ln $CANARY/secret.txt dist/a || ln /etc/passwd dist/b || ln /usr/bin/env dist/c) 2>/dev/null || true`
    const { files, state } = await attack.build('hard', `${page}; ${script}`)
    expect(state).toBe('READY')
    expect(files).toEqual(['index.html', 'twin.html'])
    await attack.expectUntouched()
  })
})
