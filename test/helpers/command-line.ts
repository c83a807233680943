// The command line for customers as a process of its own: the bundled file, with a home and an environment of its own.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildParts } from '../../build/parts.ts'

export type CliEnded = { code: number | null; stdout: string; stderr: string }

export type CliOptions = {
  env?: Record<string, string>
  input?: string
  cwd?: string
  /** Called with what came on stderr so far; true sends SIGINT. */
  interruptWhen?(stderr: string): boolean
}

export type CommandLine = {
  /** The bundled file. */
  file: string
  /** A folder of its own, which is its home too. */
  directory: string
  run(args: string[], options?: CliOptions): Promise<CliEnded>
  /** Runs it with --json; throws unless it ends with 0. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever its shape.
  json(args: string[], options?: CliOptions): Promise<any>
  /** Sends SIGINT to the one that runs; false if none does. */
  interrupt(): boolean
  remove(): Promise<void>
}

export async function openCommandLine(environment: Record<string, string> = {}): Promise<CommandLine> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-cli-'))
  const file = join(directory, 'bin', 'berth')
  const { cli } = await buildParts(['cli'])
  await mkdir(join(directory, 'bin'))
  await copyFile(join(cli, 'berth.mjs'), file)
  let running: ChildProcess | undefined
  const line: CommandLine = {
    file,
    directory,
    async run(args, { env = {}, input, cwd = directory, interruptWhen } = {}) {
      const child = spawn(process.execPath, [file, ...args], {
        cwd,
        env: { PATH: process.env.PATH, HOME: directory, ...environment, ...env },
      })
      running = child
      const ended = { stdout: '', stderr: '' }
      child.stdout.on('data', (chunk) => (ended.stdout += chunk))
      child.stderr.on('data', (chunk) => {
        ended.stderr += chunk
        if (interruptWhen?.(ended.stderr)) child.kill('SIGINT')
      })
      child.stdin.on('error', () => {})
      child.stdin.end(input ?? '')
      const [code] = (await once(child, 'close')) as [number | null]
      return { code, ...ended }
    },
    async json(args, options) {
      const { code, stdout, stderr } = await line.run([...args, '--json'], options)
      if (code !== 0) throw new Error(`berth ${args.join(' ')} ended with ${code}: ${stderr}`)
      return JSON.parse(stdout)
    },
    interrupt: () => running?.kill('SIGINT') ?? false,
    remove: () => rm(directory, { recursive: true, force: true }),
  }
  return line
}
