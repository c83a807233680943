// The entry point: answers what needs no command at once, and turns every end into an exit code.
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
  // Connections that are kept open must not hold the process; what was written must be read first.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)))
}

// Whoever reads has seen enough: `berth ls | head -1`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
process.stderr.on('error', () => {})

main(process.argv.slice(2)).then(end, (error) => {
  tell(error, process.argv.includes('--json'))
  end(codeOf(error))
})
