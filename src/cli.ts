#!/usr/bin/env node
// The entry of the command line. It imports nothing of ours before it knows that this Node can run the rest.
import * as nodeModule from 'node:module'
import { join } from 'node:path'

const oldest = 22
const major = Number(process.versions.node.split('.')[0])

if (major < oldest) {
  console.error(
    `berth: This is Node ${process.versions.node}, and Berth needs Node ${oldest} or newer. \`npm start\` and \`npm run berth\` use the one that \`npm install\` brings.`,
  )
  process.exitCode = 1
} else {
  const args = process.argv.slice(2)
  if (args[0] === 'serve') (await import('./commands/memory.ts')).boundMemory(args)
  // V8's code, beside the build it belongs to. Where nothing can be written, each start compiles anew.
  if (import.meta.filename.endsWith('.js')) nodeModule.enableCompileCache?.(join(import.meta.dirname, '../compiled'))
  const { berth } = await import('./commands/berth.ts')
  await berth(args)
}
