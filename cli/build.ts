// Bundles the CLI into one file that needs only Node.
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
    // Node's modules are loaded when needed instead of all at startup.
    format: 'iife',
    target: 'node20',
    minify: true,
    write: false,
    legalComments: 'none',
    define: { BERTH_CLI_VERSION: JSON.stringify(cli.version) },
  })

  // Works as CommonJS and as ES module: users choose the file's name and folder.
  const load = 'process.getBuiltinModule?process.getBuiltinModule.bind(process):require'
  await mkdir(dirname(outfile), { recursive: true })
  await writeFile(outfile, `#!/usr/bin/env node\n((require)=>{${outputFiles[0]!.text}})(${load})\n`)
  await chmod(outfile, 0o755)
}

if (process.argv[1] === import.meta.filename) await buildCli(resolve(process.argv[2]!))
