// docs/speed.md: its tables are generated from a run; the text is written by hand.
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'

/** A result of a group: its name, its value, and what it is compared with. */
export type Section = { name: string; about: string; rows: string[][] }

const checkout = join(import.meta.dirname, '..')
const place = /(?<=<!-- figures -->\n)[\s\S]*(?=<!-- end of figures -->)/

export async function writeReport(sections: Section[]): Promise<void> {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: checkout, encoding: 'utf8' }).trim()
  const commit = git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' with changes')
  const [cpu] = cpus()
  const machine = `${cpus().length} cores of ${cpu!.model.trim()}, Node.js ${process.version.slice(1)}`
  const date = new Date().toISOString().slice(0, 10)
  const file = join(checkout, 'docs/speed.md')
  const text = await readFile(file, 'utf8')
  if (!place.test(text)) throw new Error('docs/speed.md has no place for figures.')
  const tables = sections.map(({ name, about, rows }) => {
    const lines = [['what', 'measured', 'against'], ['---', '---', '---'], ...rows].map(
      (row) => `| ${row.join(' | ')} |`,
    )
    return `## ${name}\n\n${about}: \`npm run bench -- ${name}\`.\n\n${lines.join('\n')}\n`
  })
  const head = `Measured on ${date} at commit ${commit}: ${machine}.\n`
  await writeFile(
    file,
    text.replace(place, () => `\n${[head, ...tables].join('\n')}\n`),
  )
  console.log('Wrote docs/speed.md.')
}
