// Pull requests by the command line: listed, and approved for the commit that somebody looked at.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { type CommandLine, openCommandLine } from '../helpers/command-line.ts'

let api: TestApi
let cli: CommandLine
const commit = '4f2a9c1d0e5b6a7988c7d6e5f4a3b2c1d0e9f8a7'

beforeAll(async () => {
  cli = await openCommandLine({ here: true })
  api = await sharedApi()
  const { id: projectId } = await api.newProject('site')
  const at = new Date()
  const row = { projectId, branch: 'fix', fromFork: true, commit, createdAt: at, updatedAt: at }
  await api.db.pullRequest.createMany({
    data: [
      { ...row, number: 7, ref: 'refs/pull/7/head', title: 'Fix \u001b[31mthe greeting', state: 'OPEN' },
      { ...row, number: 6, ref: 'refs/pull/6/head', title: 'Old', state: 'CLOSED' },
    ],
  })
  const url = (await api.listen()).replace('127.0.0.1', 'localhost')
  await cli.run(['login', '--url', url, '--token', api.token])
}, 120_000)
afterAll(async () => {
  await api.stop()
  await cli.remove()
})

const ofSite = (...args: string[]) => [...args, '-p', 'site']

test('open ones are listed, and closed ones if asked for, by titles that change no terminal', async () => {
  const { stdout } = await cli.run(ofSite('pull-requests'))
  expect(stdout).toMatch(/^7 +OPEN +4f2a9c1 +needed +- .*Fix \\u001b\[31mthe greeting$/m)
  expect(stdout).not.toContain('Old')
  expect((await cli.json(ofSite('pull-requests', '--all'))).map((it: { number: number }) => it.number)).toEqual([7, 6])
})

test('a commit is approved by its whole hash, and nothing without one', async () => {
  for (const [args, code] of [
    [['approve', '7', '--yes'], 2],
    [['approve', '7'], 2],
    [['approve', '7', '--commit', commit.slice(0, 7)], 2],
    [['approve', '8', '--commit', commit], 5],
    [['approve', '6', '--commit', commit], 6],
    [['approve', '7', '--commit', 'd'.repeat(40)], 6],
  ] as const) {
    expect((await cli.run(ofSite(...args))).code, args.join(' ')).toBe(code)
  }
  expect(await api.db.deployment.count()).toBe(0)
  const approved = await cli.json(ofSite('approve', '7', '--commit', commit))
  expect(approved).toMatchObject({ number: 7, approval: 'approved', deployment: expect.stringMatching(/^dpl_/) })
  const again = await cli.run(ofSite('approve', '7', '--commit', commit.toUpperCase()))
  expect(again).toMatchObject({ code: 0, stdout: `${approved.deployment}\n` })
  expect(await api.db.deployment.count({ where: { untrusted: true } })).toBe(1)
})
