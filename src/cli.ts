#!/usr/bin/env node
// The entry of the command line. It imports nothing before it knows that this Node can run the rest.
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
  const { berth } = await import('./commands/berth.ts')
  await berth(args)
}

export {}
