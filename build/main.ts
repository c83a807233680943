// `npm run build`: builds the changed parts (server, console, CLI), or the requested ones.
import { buildParts, type PartName, partNames } from './parts.ts'

const requested = process.argv.slice(2) as PartName[]
const unknown = requested.find((name) => !partNames.includes(name))
if (unknown !== undefined) throw new Error(`There is no part ${unknown}; there are ${partNames.join(', ')}.`)

// A line that the next one overwrites.
const onTerminal = process.stdout.isTTY
await buildParts(requested.length > 0 ? requested : partNames, {
  onBuild: () => onTerminal && process.stdout.write('\r\x1b[KBuilding…'),
})
  .catch((error) => {
    // esbuild has already printed its errors.
    if (!Array.isArray(error.errors)) throw error
    process.exitCode = 1
  })
  .finally(() => onTerminal && process.stdout.write('\r\x1b[K'))
