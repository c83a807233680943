// Every group of benchmarks still runs to its end. Its figures are printed, but not judged.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { groups } from '../../bench/groups.ts'

const timeoutMs = 600_000

/** In a process group of its own, so that a run that hangs leaves nothing behind. */
async function smoke(group: string, signal: AbortSignal): Promise<{ code: number | null; output: string }> {
  const args = ['node_modules/tsx/dist/cli.mjs', 'bench/main.ts', group, '--smoke']
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const end = () => process.kill(-child.pid!, 'SIGTERM')
  signal.addEventListener('abort', end)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const [code] = await once(child, 'close')
  signal.removeEventListener('abort', end)
  return { code, output }
}

/** Each part in a file of its own, so that the processes of a run share them. */
const parts = {
  builds: ['build', 'deploy', 'roles'],
  lists: ['api', 'events', 'fairness', 'lists'],
  names: ['dns', 'hostile'],
  sites: ['edge', 'servers', 'tls'],
}

export function testPart(part: keyof typeof parts): void {
  test('each group is in a part', () => {
    expect(Object.values(parts).flat().sort()).toEqual(Object.keys(groups).sort())
  })

  for (const name of parts[part]) {
    test(`${name} runs to its end and prints each of its figures`, { timeout: timeoutMs }, async ({ signal }) => {
      const { code, output } = await smoke(name, signal)
      expect(code, output).toBe(0)
      const lines = output.split('\n')
      const { group } = await groups[name]!()
      for (const { what, against } of Object.values(group.figures)) {
        expect(lines).toContainEqual(
          expect.toSatisfy((line: string) => line.includes(what) && line.includes(against) && /\d|^skipped/.test(line)),
        )
      }
    })
  }
}
