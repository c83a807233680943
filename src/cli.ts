#!/usr/bin/env node
// The entry point. It checks Node's version before it imports anything that an old version can't run.
import * as nodeModule from 'node:module'
import { join } from 'node:path'

const minMajor = 22
const major = Number(process.versions.node.split('.')[0])

if (major < minMajor) {
  console.error(
    `berth: This is Node ${process.versions.node}, and Berth needs Node ${minMajor} or newer. \`npm start\` and \`npm run berth\` use the one that \`npm install\` brings.`,
  )
  process.exitCode = 1
} else {
  const args = process.argv.slice(2)
  if (args[0] === 'serve') (await import('./commands/memory.ts')).boundMemory(args)
  // V8's compile cache, next to the build it belongs to. Where it can't be written, each start compiles anew.
  if (import.meta.filename.endsWith('.js')) nodeModule.enableCompileCache?.(join(import.meta.dirname, '../compiled'))
  const { berth } = await import('./commands/berth.ts')
  await berth(args)
}
