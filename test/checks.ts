// The checks that need no test. The type check runs in parallel with the others, because each uses only one core.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Runs scripts of package.json one after the other until one fails; returns whether all passed. */
async function runAll(...scripts: string[][]): Promise<boolean> {
  for (const script of scripts) {
    const child = spawn('npm', ['run', '-s', ...script], { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    const [code] = await once(child, 'close')
    console.log(code === 0 ? `passed  ${script[0]}` : `FAILED  ${script[0]}\n${output}`)
    if (code !== 0) return false
  }
  return true
}

const passed = await Promise.all([runAll(['typecheck']), runAll(['lint'], ['openapi', '--', '--check'], ['lint:api'])])
if (passed.includes(false)) process.exitCode = 1
