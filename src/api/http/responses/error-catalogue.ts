// Every error code with its cause and fix, as Markdown tables for the guide on errors.
import { STATUS_CODES } from 'node:http'
import { type FaultCode, faults } from '../../../platform/errors.ts'
import { statuses } from './problem.ts'

/** Everything below this line of the guide is generated. */
const mark = /^<!-- Below this line: .* -->$/m

/** The guide with the current catalogue. */
export function withCatalogue(guide: string): string {
  const match = mark.exec(guide)
  if (!match) throw new Error('The guide on errors has no line below which the catalogue goes.')
  return `${guide.slice(0, match.index + match[0].length)}\n\n${catalogue()}`
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
