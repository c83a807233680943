// Runs tier 1 many times, each with its own seed and file order, and reports which test failed when.
//   npm run test:repeat -- --times 20            every second run competes with a process per core
//   npm run test:repeat -- --times 5 --busy      every run does (--no-busy: none)
//   npm run test:repeat -- test/jobs             only files whose path contains this
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

type Report = {
  numPassedTests: number
  numFailedTests: number
  numPendingTests: number
  testResults: {
    name: string
    status: string
    message: string
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[]
  }[]
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  allowNegative: true,
  options: {
    times: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    busy: { type: 'boolean' },
  },
})
const times = Number(values.times)
const firstSeed = Number(values.seed)
if (!(times > 0) || Number.isNaN(firstSeed)) throw new Error('--times and --seed are numbers')

const scratch = mkdtempSync(join(tmpdir(), 'berth-repeat-'))
const failures: string[] = []
for (let run = 1; run <= times; run++) {
  const seed = firstSeed + run
  const busy = values.busy ?? run % 2 === 0
  const label = `run ${run} of ${times}, seed ${seed}${busy ? ', busy' : ''}`
  const burners = busy ? burnEveryCore() : []
  const startMs = Date.now()
  const report = await runTier1(seed)
  for (const burner of burners) burner.kill('SIGKILL')
  const seconds = Math.round((Date.now() - startMs) / 1000)
  const failed = failuresOf(report)
  const { numPassedTests, numFailedTests, numPendingTests } = report
  console.log(`${label}: ${numPassedTests} passed, ${numFailedTests} failed, ${numPendingTests} skipped, ${seconds} s`)
  for (const failure of failed) console.log(`    ${failure}`)
  failures.push(...failed.map((failure) => `${label}: ${failure}`))
}
rmSync(scratch, { recursive: true, force: true })

console.log(failures.length === 0 ? `${times} of ${times} runs passed` : `Failed:\n${failures.join('\n')}`)
process.exitCode = failures.length === 0 ? 0 : 1

async function runTier1(seed: number): Promise<Report> {
  const outputFile = join(scratch, `${seed}.json`)
  const args = ['run', '--config', 'test/vitest.config.ts', '--reporter=json', `--outputFile=${outputFile}`]
  const order = ['--sequence.shuffle.files', `--sequence.seed=${seed}`]
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', ...args, ...order, ...positionals], {
    env: { ...process.env, BERTH_SEED: String(seed) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let errors = ''
  child.stderr.on('data', (chunk) => (errors += chunk))
  const [code] = await once(child, 'close')
  try {
    const report = JSON.parse(readFileSync(outputFile, 'utf8')) as Report
    // Errors outside of tests, such as unhandled rejections, are in no test's result.
    if (code !== 0 && failuresOf(report).length === 0) throw new Error(`vitest exited with ${code}`)
    return report
  } catch (error) {
    const message = `${(error as Error).message}\n${errors.slice(-4000)}`
    const testResults = [{ name: 'vitest', status: 'failed', message, assertionResults: [] }]
    return { numPassedTests: 0, numFailedTests: 1, numPendingTests: 0, testResults }
  }
}

function failuresOf({ testResults }: Report): string[] {
  return testResults
    .filter(({ status }) => status === 'failed')
    .flatMap(({ name, message, assertionResults }) => {
      const file = name.slice(name.lastIndexOf('/test/') + 1)
      const failed = assertionResults.filter(({ status }) => status === 'failed')
      if (failed.length === 0) return [`${file}: ${message}`]
      return failed.map(
        ({ fullName, failureMessages }) => `${file} > ${fullName}: ${failureMessages[0]?.split('\n')[0]}`,
      )
    })
}

// Each exits with this process, however it exits.
function burnEveryCore(): ChildProcess[] {
  const program = `const parent = process.ppid; while (process.ppid === parent) for (let i = 0; i < 1e8; i++);`
  return Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ['-e', program], { stdio: 'ignore' }),
  )
}
