// The table of a proof, what is behind its figures, and whether it holds.
import { table } from '../../bench/figures.ts'
import type { Report } from './prove.ts'

const maxTold = 20

/** Whether nothing was lost, done twice, left unfinished, orphaned or leaked. */
export function holds({ rows, refused, orphans, leaked, restored }: Report): boolean {
  const faults = rows.flatMap(({ lost, repeated, unfinished }) => [...lost, ...repeated, ...unfinished])
  return [faults, refused, orphans, leaked, restored ?? []].every((list) => list.length === 0)
}

export function render(report: Report): string {
  const { rows, kills, visits, redelivered, refused, internalErrors, orphans, leaked, restored } = report
  const sum = (of: (row: Report['rows'][number]) => number) => String(rows.reduce((all, row) => all + of(row), 0))
  const lines = [
    table([
      ['', 'acknowledged', 'lost', 'repeated', 'unfinished'],
      ...rows.map(({ name, acknowledged, lost, repeated, unfinished }) => [
        name,
        ...[acknowledged, lost.length, repeated.length, unfinished.length].map(String),
      ]),
      [
        'all',
        sum((row) => row.acknowledged),
        sum((row) => row.lost.length),
        sum((row) => row.repeated.length),
        sum((row) => row.unfinished.length),
      ],
    ]),
    '',
    table([
      ['', 'requests', 'failed'],
      ...Object.entries(visits).map(([name, { asked, failed }]) => [
        `visitors by ${name}`,
        String(asked),
        String(failed),
      ]),
    ]),
    '',
    `killed by -9: ${[...kills].map(([victim, count]) => `${count} × ${victim}`).join(', ')}`,
    `orphaned processes: ${orphans.length}; leaked directories: ${leaked.length}`,
    `answers 500 to writers: ${internalErrors.length}; refused without reason: ${refused.length}; webhooks delivered again: ${redelivered}`,
    restored === null
      ? 'backup and restore: skipped, this `berth` has no backup'
      : `backup and restore: ${restored.length} differences`,
  ]
  const told = (what: string, list: string[]) => {
    const counts = new Map<string, number>()
    for (const one of list) counts.set(one, (counts.get(one) ?? 0) + 1)
    const different = [...counts].map(([one, count]) => `${what}: ${count > 1 ? `${count} × ` : ''}${one}`)
    lines.push(...different.slice(0, maxTold))
    if (different.length > maxTold) lines.push(`${what}: … and ${different.length - maxTold} more`)
  }
  told(
    'lost',
    rows.flatMap(({ lost }) => lost),
  )
  told(
    'repeated',
    rows.flatMap(({ repeated }) => repeated),
  )
  told(
    'unfinished',
    rows.flatMap(({ unfinished }) => unfinished),
  )
  told('refused', refused)
  told('answer 500', internalErrors)
  told('orphan', orphans)
  told('leaked', leaked)
  told('restore', restored ?? [])
  for (const [name, { faults }] of Object.entries(visits)) told(`failed ${name}`, faults)
  return lines.join('\n')
}
