// Builds the console into dist/dashboard, or where it is told: split, minified, named by content, compressed; --watch builds at every change.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { type BuildOptions, context, type Metafile, type Plugin } from 'esbuild'

const from = join(import.meta.dirname, 'src')
const watch = process.argv.includes('--watch')
const given = process.argv.slice(2).find((argument) => !argument.startsWith('--'))
const to = given ? resolve(given) : join(import.meta.dirname, '../dist/dashboard')
const compressed = { br: promisify(brotliCompress), gz: promisify(gzip) }

const options: BuildOptions = {
  absWorkingDir: import.meta.dirname,
  entryPoints: ['src/main.tsx', 'src/style.css', 'src/icon.svg'],
  outdir: to,
  entryNames: 'assets/[name]-[hash]',
  chunkNames: 'assets/[name]-[hash]',
  loader: { '.svg': 'copy' },
  bundle: true,
  splitting: true,
  format: 'esm',
  minify: true,
  target: ['chrome120', 'firefox121', 'safari17.5'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  metafile: true,
  legalComments: 'none',
  write: false,
}

const writer: Plugin = {
  name: 'write',
  setup: (build) =>
    build.onEnd(async ({ outputFiles = [], metafile, errors }) => {
      if (errors.length > 0 || !metafile) return
      await mkdir(join(to, 'assets'), { recursive: true })
      for (const { path, contents } of outputFiles) await store(path, contents)
      // Last, because a server that watches it reads everything anew.
      await store(join(to, 'index.html'), Buffer.from(await page(metafile)))
      await removeOld([...outputFiles.map(({ path }) => path), join(to, 'index.html')])
    }),
}

async function store(path: string, contents: Uint8Array): Promise<void> {
  await writeFile(path, contents)
  const br = await compressed.br(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: watch ? 4 : 11 } })
  await writeFile(`${path}.br`, br)
  await writeFile(`${path}.gz`, await compressed.gz(contents, { level: 9 }))
}

async function removeOld(kept: string[]): Promise<void> {
  for (const name of await readdir(join(to, 'assets'))) {
    const path = join(to, 'assets', name)
    if (!kept.includes(path.replace(/\.(br|gz)$/, ''))) await rm(path)
  }
}

async function page({ outputs }: Metafile): Promise<string> {
  const root = relative(import.meta.dirname, to)
  const address = (path: string) => `/${relative(root, path)}`
  const find = (start: string) => Object.keys(outputs).find((path) => basename(path).startsWith(start))!
  const script = find('main-')
  // Fetched beside the script, and not after it has been read.
  const preload = (outputs[script]?.imports ?? [])
    .filter(({ kind }) => kind === 'import-statement')
    .map(({ path }) => `<link rel="modulepreload" href="${address(path)}">`)
  const html = await readFile(join(from, 'index.html'), 'utf8')
  const values: Record<string, string> = {
    icon: address(find('icon-')),
    style: address(find('style-')),
    script: address(script),
    preload: preload.join('\n'),
  }
  return html.replace(
    /{{(\w+)}}\n?/g,
    (whole, name) => values[name]! + (whole.endsWith('\n') && values[name] ? '\n' : ''),
  )
}

const build = await context({ ...options, plugins: [writer] })
if (watch) await build.watch()
else {
  await build.rebuild()
  await build.dispose()
}
