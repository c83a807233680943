import { afterEach, expect, test, vi } from 'vitest'
import { berth } from '../../src/commands/berth.ts'

const said: string[] = []
vi.spyOn(console, 'log').mockImplementation((text: string) => void said.push(text))
vi.spyOn(console, 'error').mockImplementation((text: string) => void said.push(text))
afterEach(() => {
  said.length = 0
  process.exitCode = undefined
})

async function help(...args: string[]): Promise<string> {
  said.length = 0
  await berth([...args, '--help'])
  return said.join('\n')
}

test('each command prints its own usage, and berth alone that of all', async () => {
  const whole = (await help()).split('\n')
  expect(whole.length).toBeGreaterThan(15)
  const seen = new Set([whole[0]])
  const commands = new Set(whole.flatMap((line) => /^ {2}berth (\S+)/.exec(line)?.[1]?.split('|') ?? []))
  expect(commands.size).toBeGreaterThan(10)
  for (const command of commands) {
    const [title, ...lines] = (await help(command)).split('\n')
    expect(title).toBe('Usage:')
    for (const line of lines) {
      if (line.startsWith('  berth ')) expect(line.split(/[ |]/)).toContain(command)
      seen.add(line)
    }
    expect(await help(command, 'anything')).toBe([title, ...lines].join('\n'))
  }
  // No line belongs to no command.
  expect(whole.filter((line) => !seen.has(line))).toEqual([])
  expect(await help('jobs')).toBe(`Usage:
  berth jobs list [--json]                        failed jobs
  berth jobs retry|discard <id…|all>              run failed jobs again, or delete them`)
  expect((await help('nothing')).split('\n')).toEqual(whole)
})

test('a command that is misunderstood tells its own usage', async () => {
  // Vitest sets it, and not to an address.
  vi.stubEnv('BASE_URL', undefined)
  await berth(['secrets', 'burn'])
  vi.unstubAllEnvs()
  expect(said.join('\n')).toContain('Unknown command: berth secrets burn\nUsage:\n  berth secrets rotate')
  expect(said.join('\n')).not.toContain('berth jobs')
  expect(process.exitCode).toBe(1)
})
