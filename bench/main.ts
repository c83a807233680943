// `npm run bench -- [group …]`: runs these groups, or all. `--only` runs a part of a group, `--smoke` checks within minutes
// that all of them still run, and `--report` writes docs/speed.md.
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { table } from './figures.ts'
import { type Figure, type Group, runGroup } from './group.ts'
import { groups } from './groups.ts'
import { findProgram, packages } from './programs.ts'
import { type Section, writeReport } from './report.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', default: '' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    smoke: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
  },
})
const number = (text: string | undefined) => (text === undefined ? null : Number(text))
const options = { ...values, rounds: number(values.rounds), seconds: number(values.seconds) }
const required = values.report || process.env.BERTH_REQUIRE_PEERS === '1'

function refuse(why: string): never {
  console.error(why)
  process.exit(2)
}

const unknown = positionals.find((name) => !(name in groups))
if (unknown !== undefined) refuse(`There is no group ${unknown}. The groups are ${Object.keys(groups).join(', ')}.`)
if (values.report && process.argv.length > 3) refuse('--report measures every group in full, so it stands alone.')

/** The results that can't be measured here, with the packages they need. */
function skippedOf({ figures }: Group): Map<Figure, string[]> {
  const missing = Object.values(figures).map((figure) => {
    const programs = (figure.needs ?? []).filter((name) => findProgram(name) === null)
    return [figure, programs.map((name) => packages[name])] as const
  })
  return new Map(missing.filter(([, wanted]) => wanted.length > 0))
}

async function measure(name: string): Promise<Section> {
  const { group } = await groups[name]!()
  const skipped = skippedOf(group)
  for (const [{ what, against }, missing] of skipped) {
    console.log(`skipped ${what} (${against}): apt install ${missing.join(' ')}`)
  }
  if (required && skipped.size > 0) throw new Error('Programs are missing; see above.')
  const measured = await runGroup(group, options)
  const rows = Object.entries(group.figures).flatMap(([key, figure]) => {
    const value = measured.get(key)
    if (value !== undefined) return [[figure.what, value, figure.against]]
    if (values.only !== '' || skipped.has(figure)) return []
    throw new Error(`${figure.what} (${figure.against}) was not measured.`)
  })
  return { name, about: group.about, rows }
}

if (values.smoke) {
  console.log('A smoke run: it shows that every group runs. Its figures mean nothing.\n')
  // Half of the startup is stripping types and compiling. Full runs don't use the cache, which would change their results.
  process.env.NODE_COMPILE_CACHE = join(import.meta.dirname, '../node_modules/.cache/bench')
}
const sections: Section[] = []
const failed: string[] = []
for (const name of positionals.length > 0 ? positionals : Object.keys(groups)) {
  const startedMs = performance.now()
  try {
    const section = await measure(name)
    sections.push(section)
    console.log(`\n${table([[name, 'measured', 'against'], ...section.rows])}`)
  } catch (error) {
    failed.push(name)
    console.error(error)
  }
  console.log(`\n${name} took ${((performance.now() - startedMs) / 1000).toFixed(0)} s\n`)
}
if (failed.length > 0) {
  console.error(`Failed: ${failed.join(', ')}.`)
  process.exitCode = 1
} else if (values.report) await writeReport(sections)
