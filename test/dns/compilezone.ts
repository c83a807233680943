// Runs BIND's named-compilezone, the oracle for what a zone file means.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const program = 'named-compilezone'
const found = spawnSync(program, ['-v']).error === undefined

// Where peers are required, a missing one is a failure; elsewhere the tests that need it are skipped.
export const oracleAbsent = !found && process.env.BERTH_REQUIRE_PEERS !== '1'

// Every check that is about good practice rather than about syntax is off.
const checksOff = [
  '-i',
  'none',
  ...['-k', '-m', '-n', '-r', '-M', '-S', '-T', '-W'].flatMap((flag) => [flag, 'ignore']),
]

export type Compiled = { ok: true; text: string; warnings: string } | { ok: false; message: string }

export function compileZone(zone: string, file: string, style: 'relative' | 'full'): Compiled {
  if (!found) throw new Error(`${program} is not installed; it comes with Debian's bind9-utils package.`)
  const folder = mkdtempSync(join(tmpdir(), 'compilezone-'))
  try {
    const path = join(folder, 'zone')
    writeFileSync(path, file)
    const args = [...checksOff, '-f', 'text', '-F', 'text', '-s', style, '-o', '-', zone, path]
    const run = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
    if (run.status === 0) return { ok: true, text: run.stdout, warnings: run.stderr }
    return { ok: false, message: `${run.stderr}${run.stdout}` }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
