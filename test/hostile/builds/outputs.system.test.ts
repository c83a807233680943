import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createRepository } from '../../helpers/repository.ts'
import { type Attack, isProtected, startAttack } from './attacks.ts'

vi.setConfig({ testTimeout: 120_000 })

let attack: Attack
beforeAll(async () => {
  attack = await startAttack({ BUILD_CONCURRENCY: '5' })
})
afterAll(() => attack.stop())

const page = 'mkdir -p dist && echo page > dist/index.html'
const node = (program: string) => `node -e "${program}"`

// Side by side: each has a project of its own.
describe.runIf(isProtected)('an output with', { concurrent: true }, () => {
  test.each([
    ['a FIFO', 'fifo', 'mkfifo dist/pipe', 'output_unsafe', 'pipe is neither a file nor a folder'],
    [
      'a socket',
      'socket',
      `${node("require('net').createServer().listen('dist/sock', () => process.kill(process.pid, 'SIGKILL'))")}; true`,
      'output_unsafe',
      'sock is neither a file nor a folder',
    ],
    [
      'a name with a newline',
      'newline',
      'printf x > "$(printf \'dist/a\\nb\')"',
      'output_unsafe',
      'a\\x0ab has a control character',
    ],
    [
      'a name that is not UTF-8',
      'latin',
      'printf x > "$(printf \'dist/caf\\351.html\')"',
      'output_unsafe',
      'caf\\xe9.html has a name that is not UTF-8',
    ],
    [
      'two names that are one in Unicode',
      'twins',
      'printf x > "$(printf \'dist/\\303\\251\')"; printf x > "$(printf \'dist/e\\314\\201\')"',
      'output_unsafe',
      'have the same name in Unicode',
    ],
    [
      '5,000 levels',
      'levels',
      `cd dist; ${node("for (let i = 0; i < 5000; i++) { fs.mkdirSync('d'); process.chdir('d') }")}`,
      'output_unsafe',
      'folders deep',
    ],
    ['a sparse file of 3 GB', 'sparse', 'truncate -s 3G dist/big', 'output_too_large', 'larger than 2048 MiB'],
    [
      '50,001 files',
      'many',
      node("for (let i = 0; i < 50001; i++) fs.linkSync('dist/index.html', 'dist/' + i)"),
      'output_too_large',
      'more than 50000 files',
    ],
    [
      'an unreadable file',
      'closed',
      'echo x > dist/closed; chmod 0 dist/closed',
      'output_unsafe',
      'closed cannot be read',
    ],
    [
      'folders that link to each other without end',
      'explode',
      'for a in 1 2 3 4 5 6 7 8 9; do mkdir dist/$a; for b in 1 2 3 4 5 6 7 8 9; do ln -s ../$b dist/$a/l$b; done; done',
      'output_too_large',
      'too many links to follow',
    ],
  ])('%s is refused at once, by name', async (_what, name, script, code, text) => {
    const result = await attack.build(`odd-${name}`, `${page}; ${script}`)
    expect(result).toMatchObject({ state: 'ERROR', error: { code } })
    expect(result.error!.message).toContain(text)
    expect(result.files).toEqual([])
    // One build, not two: it would fail again.
    expect(result.log.match(/clone: Cloning/g)).toHaveLength(1)
    await attack.expectUntouched(result)
    expect(await readdir(join(attack.platform.api.config.dataDir, 'builds'))).not.toContain(result.id)
  })

  test('a sparse file of a terabyte cannot even be made', async () => {
    const result = await attack.build('tera', `${page}; truncate -s 1T dist/big`)
    expect(result).toMatchObject({ state: 'ERROR', error: { code: 'build_failed' } })
  })

  test('devices cannot be made', async () => {
    const result = await attack.build('device', `${page}; (mknod dist/null c 1 3 && echo made) 2>/dev/null; true`)
    expect(result).toMatchObject({ state: 'READY', files: ['index.html'] })
    expect(result.log).not.toMatch(/build: made/)
  })

  test('a name of 255 bytes is published', async () => {
    const name = `${'n'.repeat(250)}.html`
    const { files } = await attack.build('long', `${page}; echo x > dist/${name}`)
    expect(files).toContain(name)
  })
})

describe.concurrent('a repository that needs no build, with', () => {
  const deployed = async (
    name: string,
    prepare: (tree: string) => Promise<unknown>,
    files: Record<string, string> = { 'index.html': 'x' },
  ) => {
    await createRepository(attack.platform.repositories, `acme/${name}`, files, { prepare })
    await attack.platform.api.call('POST', '/projects', { body: { name, repo: `acme/${name}` } })
    return attack.deploy(name)
  }

  test.each([
    [
      'a link outside',
      'git-link',
      (tree: string) => symlink(attack.canary, join(tree, 'a')),
      'a is a link that points outside',
    ],
    [
      'a link to a file outside',
      'git-file',
      (tree: string) => symlink('/etc/passwd', join(tree, 'a')),
      'a is a link that points outside',
    ],
    [
      'a name that is not UTF-8',
      'git-latin',
      (tree: string) => writeFile(Buffer.concat([Buffer.from(`${tree}/caf`), Buffer.from([0xe9])]), 'x'),
      'caf\\xe9 has a name that is not UTF-8',
    ],
    [
      'a newline in a name',
      'git-newline',
      (tree: string) => writeFile(join(tree, 'a\nb'), 'x'),
      'a\\x0ab has a control',
    ],
  ])('%s is refused by name, and no tree is made', async (_what, name, prepare, text) => {
    const result = await deployed(name, prepare)
    expect(result).toMatchObject({ state: 'ERROR', error: { code: 'output_unsafe' } })
    expect(result.error!.message).toContain(text)
    await attack.expectUntouched(result)
  })

  test('links to its own folders follows them', async () => {
    const result = await deployed('git-folder', async (tree) => {
      await mkdir(join(tree, 'real'))
      await writeFile(join(tree, 'real/a.txt'), 'a')
      await symlink('real', join(tree, 'again'))
    })
    expect(result).toMatchObject({ state: 'READY', files: ['again/a.txt', 'index.html', 'real/a.txt'] })
  })

  test('no first page publishes nothing, and says what it is', async () => {
    const result = await deployed('flask', async () => {}, {
      'requirements.txt': 'flask',
      'server/config.py': 'PASSWORD = 1',
    })
    expect(result).toMatchObject({ state: 'ERROR', error: { code: 'output_missing' }, files: [] })
    expect(result.error!.message).toMatch(
      /index\.html at the root.*requirements\.txt: a Python project.*outputDirectory/,
    )
  })
})

test('a build that writes elsewhere publishes none of its sources', async () => {
  const files = { 'server/config.py': 'PASSWORD = 1', 'index.html': 'source' }
  const body = { framework: 'other' }
  const result = await attack.build('elsewhere', 'mkdir -p www && echo x > www/index.html', { files, body })
  expect(result).toMatchObject({ state: 'ERROR', error: { code: 'output_missing' }, files: [] })
  expect(result.error!.message).toMatch(/looked for dist, build with an index\.html.*www.*Set outputDirectory/)
})
