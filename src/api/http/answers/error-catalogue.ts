// Every error code with its fix as tables of Markdown, for the guide on errors. A code's title and cause are on its own page.
import { STATUS_CODES } from 'node:http'
import { type FaultCode, faults } from '../../../platform/errors.ts'
import { statuses } from './problem.ts'

/** The line of the guide below which everything is written from the catalogue. */
const mark = /^<!-- Below this line: .* -->$/m

/** The guide with the catalogue as it is now. */
export function withCatalogue(guide: string): string {
  const found = mark.exec(guide)
  if (!found) throw new Error('The guide on errors has no line below which the catalogue goes.')
  return `${guide.slice(0, found.index + found[0].length)}\n\n${catalogue()}`
}

function catalogue(): string {
  const codes = Object.keys(faults) as FaultCode[]
  const groups = [...new Set(Object.values(statuses))].sort((one, other) => one - other)
  return groups
    .map((status) => {
      const rows = codes.filter((code) => statuses[code] === status).map(row)
      return `## ${status} ${STATUS_CODES[status]}\n\n| code | fix |\n|---|---|\n${rows.join('\n')}\n`
    })
    .join('\n')
}

function row(code: FaultCode): string {
  return `| \`${code}\` | ${faults[code].cure} |`
}
