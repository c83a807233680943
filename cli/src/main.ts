// The entry point: handles --version itself, and turns every result into an exit code.
import { home, version } from './kit/built-in.ts'
import { codeOf, exitCodes, tell } from './kit/failures.ts'

async function main(args: string[]): Promise<number> {
  if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
    process.stdout.write(`${version}\n`)
    return exitCodes.ok
  }
  const { run } = await import('./run.ts')
  return run(args, home)
}

function end(code: number): void {
  // Open connections must not keep the process alive, but all output must be flushed.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)))
}

// The reader has seen enough: `berth ls | head -1`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
process.stderr.on('error', () => {})

main(process.argv.slice(2)).then(end, (error) => {
  tell(error, process.argv.includes('--json'))
  end(codeOf(error))
})
