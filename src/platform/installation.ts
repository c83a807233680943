// Finds the files that Berth reads at run time. The same code runs from src/ and, bundled, from dist/builds/<name>/.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

function find(name: string, from: string): string {
  return existsSync(join(from, name)) || from === dirname(from) ? from : find(name, dirname(from))
}

/** The directory with package.json. */
export const root = find('package.json', import.meta.dirname)

// A thread must run the build that started it, which is no longer the current one after a new build.
const program = find('src/cli.js', import.meta.dirname)

/** The file to start a thread with. `module` is its path from the root, without an extension. */
export function programFile(module: string): string {
  return import.meta.filename.endsWith('.ts') ? join(root, `${module}.ts`) : join(program, `${module}.js`)
}
