// Builds the command line into one file, which needs Node alone.
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { build } from 'esbuild'
import cli from './package.json' with { type: 'json' }

export async function buildCli(outfile: string): Promise<void> {
  const { outputFiles } = await build({
    absWorkingDir: import.meta.dirname,
    entryPoints: ['src/main.ts'],
    bundle: true,
    platform: 'node',
    // Modules of Node are loaded by those who need them, and not all at the start.
    format: 'iife',
    target: 'node20',
    minify: true,
    write: false,
    legalComments: 'none',
    define: { BERTH_CLI_VERSION: JSON.stringify(cli.version) },
  })

  // A script for both kinds of modules: whoever fetches it names it as they like, in a folder of either kind.
  const load = 'process.getBuiltinModule?process.getBuiltinModule.bind(process):require'
  await mkdir(dirname(outfile), { recursive: true })
  await writeFile(outfile, `#!/usr/bin/env node\n((require)=>{${outputFiles[0]!.text}})(${load})\n`)
  await chmod(outfile, 0o755)
}

if (process.argv[1] === import.meta.filename) await buildCli(resolve(process.argv[2]!))
