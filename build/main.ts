// `npm run build`: builds what changed of the server, the console and the command line, or of those that are named.
import { buildParts, type PartName, partNames } from './parts.ts'

const named = process.argv.slice(2) as PartName[]
const unknown = named.find((name) => !partNames.includes(name))
if (unknown !== undefined) throw new Error(`There is no part ${unknown}; there are ${partNames.join(', ')}.`)

// One line that the next one is written over.
const onTerminal = process.stdout.isTTY
await buildParts(named.length > 0 ? named : partNames, {
  onBuild: () => onTerminal && process.stdout.write('\r\x1b[KBuilding…'),
})
  .catch((error) => {
    // esbuild has said what is wrong, and where.
    if (!Array.isArray(error.errors)) throw error
    process.exitCode = 1
  })
  .finally(() => onTerminal && process.stdout.write('\r\x1b[K'))
