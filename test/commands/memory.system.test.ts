import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { expect, test } from 'vitest'

type Start = { pid: number; arguments: string[]; arenas?: string; threshold?: string }

/** How a command line starts, and starts again: each time, a line on standard output. */
function starts(args: string[], environment: Record<string, string> = {}, nodeArgs: string[] = []): Start[] {
  const tell = `console.log(JSON.stringify({ pid: process.pid, arguments: process.execArgv.filter((one) => /^--(max|heap|(no-)?concurrent)/.test(one)),
    arenas: process.env.MALLOC_ARENA_MAX, threshold: process.env.MALLOC_MMAP_THRESHOLD_ }))`
  const preload = ['--import', `data:text/javascript,${encodeURIComponent(tell)}`]
  const { stdout } = spawnSync(process.execPath, [...nodeArgs, ...preload, 'dist/src/cli.js', ...args], {
    env: { PATH: process.env.PATH, ...environment },
    encoding: 'utf8',
  })
  return stdout.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Start] : []))
}

// Ends before anything is opened.
const serve = ['serve', '--roles', 'none']

test.skipIf(process.platform !== 'linux')('a server starts again in the same process, with its memory bounded', () => {
  const [first, second, ...more] = starts(serve)
  expect(first).toMatchObject({ arguments: [] })
  expect(second).toEqual({
    pid: first!.pid,
    arguments: ['--max-semi-space-size=16', '--heap-growing-percent=50'],
    arenas: '2',
    threshold: '1048576',
  })
  expect(more).toEqual([])
})

test.skipIf(process.platform !== 'linux')('what the operator has set stays', () => {
  const own = { MALLOC_ARENA_MAX: '7', NODE_OPTIONS: '--max-semi-space-size=32' }
  expect(starts(serve, own).at(-1)).toMatchObject({
    arguments: ['--heap-growing-percent=50'],
    arenas: '7',
    threshold: '1048576',
  })
  expect(starts(serve, {}, ['--heap-growing-percent=80']).at(-1)).toMatchObject({
    arguments: ['--max-semi-space-size=16', '--heap-growing-percent=80'],
  })
})

test.skipIf(process.platform !== 'linux')('a nameserver alone leaves its few processors to its answers', () => {
  const own = availableParallelism() <= 2 ? ['--no-concurrent-marking'] : []
  for (const roles of [['--roles', 'nameserver'], ['--roles=nameserver']]) {
    const { arguments: found } = starts(['serve', ...roles, '--unknown']).at(-1)!
    expect(found).toEqual(['--max-semi-space-size=16', '--heap-growing-percent=50', ...own])
  }
  const [others] = starts(['serve', '--roles', 'nameserver,edge', '--unknown']).slice(-1)
  expect(others!.arguments).not.toContain('--no-concurrent-marking')
  const [set] = starts(['serve', '--roles', 'nameserver', '--unknown'], {}, ['--concurrent-marking']).slice(-1)
  expect(set!.arguments).not.toContain('--no-concurrent-marking')
})

test('a command that ends by itself is not started again', () => {
  expect(starts(['--help'])).toHaveLength(1)
})
