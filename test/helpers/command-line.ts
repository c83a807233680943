// Runs the CLI: the bundled file as a process with its own home and environment, or the same program in this process,
// which is faster.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { vi } from 'vitest'
import { buildParts } from '../../build/parts.ts'
import { exitCodeOf, printError } from '../../cli/src/kit/failures.ts'
import { run as runProgram } from '../../cli/src/run.ts'

export type CliEnded = { code: number | null; stdout: string; stderr: string }

export type CliOptions = {
  env?: Record<string, string>
  input?: string
  cwd?: string
  /** Called with the stderr so far; returning true sends SIGINT. */
  interruptWhen?(stderr: string): boolean
  /** Simulates a terminal: each answer is typed once its question is on stderr. In this process only. */
  answers?: [RegExp, string][]
}

export type CommandLine = {
  /** The bundled file. */
  file: string
  /** Its own folder, which is also its home. */
  directory: string
  run(args: string[], options?: CliOptions): Promise<CliEnded>
  /** Runs it with --json; throws unless it exits with 0. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever its shape.
  json(args: string[], options?: CliOptions): Promise<any>
  /** Sends SIGINT to the running process; false if there is none. */
  interrupt(): boolean
  remove(): Promise<void>
}

/** `here`: in this process, except commands that are interrupted or need their own folder. A process costs ten times as much. */
export async function openCommandLine({ here = false } = {}): Promise<CommandLine> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-cli-'))
  const file = join(directory, 'bin', 'berth')
  const { cli } = await buildParts(['cli'])
  await mkdir(join(directory, 'bin'))
  await copyFile(join(cli, 'berth.mjs'), file)
  let running: ChildProcess | undefined
  const line: CommandLine = {
    file,
    directory,
    async run(args, { env: more = {}, input, cwd = directory, interruptWhen, answers } = {}) {
      const env = { PATH: process.env.PATH, HOME: directory, ...more }
      if (answers || (here && !interruptWhen && cwd === directory)) return runHere(args, cwd, env, { input, answers })
      const child = spawn(process.execPath, [file, ...args], { cwd, env })
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

/** Runs it like its entry point, with its own globals of a process. */
async function runHere(
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  { input = '', answers }: Pick<CliOptions, 'input' | 'answers'>,
): Promise<CliEnded> {
  const stdin = answers ? new PassThrough() : Readable.from([Buffer.from(input)])
  const left = [...(answers ?? [])]
  let asked = 0
  const typeAnswer = () => {
    const match = left[0]?.[0].exec(ended.stderr.slice(asked))
    if (!match) return
    asked += match.index + match[0].length
    ;(stdin as PassThrough).write(`${left.shift()![1]}\n`)
  }
  const isTTY = Object.getOwnPropertyDescriptor(process.stderr, 'isTTY')
  if (answers) {
    Object.assign(stdin, { isTTY: true })
    Object.defineProperty(process.stderr, 'isTTY', { value: true, configurable: true })
  }
  const ended: CliEnded = { code: null, stdout: '', stderr: '' }
  const own = { cwd: process.cwd(), env: process.env, stdin: Object.getOwnPropertyDescriptor(process, 'stdin')! }
  const signals = (['SIGINT', 'SIGTERM'] as const).map((name) => [name, process.listeners(name)] as const)
  const written = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
      ended[name] += String(chunk)
      // Readline starts listening only after it has written the question.
      if (answers) setImmediate(typeAnswer)
      return true
    }),
  )
  process.chdir(cwd)
  process.env = env
  Object.defineProperty(process, 'stdin', { ...own.stdin, get: () => stdin })
  try {
    ended.code = await runProgram(args, null)
  } catch (error) {
    printError(error, args.includes('--json'))
    ended.code = exitCodeOf(error)
  } finally {
    process.chdir(own.cwd)
    process.env = own.env
    Object.defineProperty(process, 'stdin', own.stdin)
    if (answers && isTTY) Object.defineProperty(process.stderr, 'isTTY', isTTY)
    else if (answers) Reflect.deleteProperty(process.stderr, 'isTTY')
    for (const spy of written) spy.mockRestore()
    for (const [name, before] of signals) {
      for (const listener of process.listeners(name)) if (!before.includes(listener)) process.off(name, listener)
    }
  }
  return ended
}
