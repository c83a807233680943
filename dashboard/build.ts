// Builds the console: split, minified, hashed names, compressed. Run directly, rebuilds dist/dashboard on every change.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { type BuildContext, context, type Metafile, type Plugin } from 'esbuild'

const from = join(import.meta.dirname, 'src')
const compressed = { br: promisify(brotliCompress), gz: promisify(gzip) }

/** `quality` is Brotli's, up to 11, which takes ten times as long as 4. */
function open(to: string, quality: number): Promise<BuildContext> {
  return context({
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
    plugins: [writer(to, quality)],
  })
}

function writer(to: string, quality: number): Plugin {
  const index = join(to, 'index.html')
  return {
    name: 'write',
    setup: (build) =>
      build.onEnd(async ({ outputFiles = [], metafile, errors }) => {
        if (errors.length > 0 || !metafile) return
        await mkdir(join(to, 'assets'), { recursive: true })
        await Promise.all(outputFiles.map(({ path, contents }) => store(path, contents, quality)))
        // Written last, because a server that watches it then reloads everything.
        await store(index, Buffer.from(await page(to, metafile)), quality)
        await removeOld(to, [...outputFiles.map(({ path }) => path), index])
      }),
  }
}

async function store(path: string, contents: Uint8Array, quality: number): Promise<void> {
  const br = compressed.br(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } })
  const gz = compressed.gz(contents, { level: 9 })
  await Promise.all([writeFile(path, contents), writeFile(`${path}.br`, await br), writeFile(`${path}.gz`, await gz)])
}

async function removeOld(to: string, kept: string[]): Promise<void> {
  for (const name of await readdir(join(to, 'assets'))) {
    const path = join(to, 'assets', name)
    if (!kept.includes(path.replace(/\.(br|gz)$/, ''))) await rm(path)
  }
}

async function page(to: string, { outputs }: Metafile): Promise<string> {
  const root = relative(import.meta.dirname, to)
  const urlOf = (path: string) => `/${relative(root, path)}`
  const find = (start: string) => Object.keys(outputs).find((path) => basename(path).startsWith(start))!
  const script = find('main-')
  // Loads these in parallel with the script instead of after parsing it.
  const preload = (outputs[script]?.imports ?? [])
    .filter(({ kind }) => kind === 'import-statement')
    .map(({ path }) => `<link rel="modulepreload" href="${urlOf(path)}">`)
  const html = await readFile(join(from, 'index.html'), 'utf8')
  const values: Record<string, string> = {
    icon: urlOf(find('icon-')),
    style: urlOf(find('style-')),
    script: urlOf(script),
    preload: preload.join('\n'),
  }
  return html.replace(
    /{{(\w+)}}\n?/g,
    (whole, name) => values[name]! + (whole.endsWith('\n') && values[name] ? '\n' : ''),
  )
}

export async function buildConsole(to: string): Promise<void> {
  const build = await open(to, 11)
  try {
    await build.rebuild()
  } finally {
    await build.dispose()
  }
}

async function watch(): Promise<void> {
  const to = join(import.meta.dirname, '../dist/dashboard')
  // Removes the link to a hashed build, which must stay unchanged.
  await rm(to, { recursive: true, force: true })
  const build = await open(to, 4)
  await build.watch()
}

if (process.argv[1] === import.meta.filename) await watch()
