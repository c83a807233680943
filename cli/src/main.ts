// The entry point: handles --version, runs the command, and exits with its code.
import { home, version } from './kit/built-in.ts'
import { exitCodeOf, exitCodes, printError } from './kit/failures.ts'

async function main(args: string[]): Promise<number> {
  if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
    process.stdout.write(`${version}\n`)
    return exitCodes.ok
  }
  const { run } = await import('./run.ts')
  return run(args, home)
}

function exit(code: number): void {
  // Open connections must not keep the process alive, but all output must be flushed.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)))
}

// The reader closed the pipe, as in `berth ls | head -1`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
process.stderr.on('error', () => {})

main(process.argv.slice(2)).then(exit, (error) => {
  printError(error, process.argv.includes('--json'))
  exit(exitCodeOf(error))
})
