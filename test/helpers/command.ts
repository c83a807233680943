// Runs a command of the compiled program to its end.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

export type Ended = { code: number | null; output: string }

export async function runCommand(args: string[], environment: Record<string, string>): Promise<Ended> {
  const child = spawn(process.execPath, ['dist/src/cli.js', ...args], {
    env: { PATH: process.env.PATH, ...environment },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}
