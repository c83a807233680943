// A Next.js starter, created by its own generator from the package registry.
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const generator = 'create-next-app@16'

/** Its text files by path, without fonts, which a build would fetch from a host that is no registry. */
export async function nextStarter(directory: string): Promise<Record<string, string>> {
  await mkdir(directory, { recursive: true })
  const flags = ['--js', '--app', '--no-eslint', '--no-tailwind', '--no-src-dir', '--no-git', '--skip-install', '--yes']
  const options = { cwd: directory, timeout: 180_000, env: { ...process.env, CI: 'true' } }
  await run('npx', ['--yes', generator, 'site', ...flags, '--use-npm', '--disable-git'], options)
  const site = join(directory, 'site')
  await run('npm', ['install', '--package-lock-only', '--no-audit', '--no-fund'], { ...options, cwd: site })
  const files: Record<string, string> = {}
  for (const entry of await readdir(site, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile() || /node_modules|\.git\/|\.ico$/.test(path)) continue
    files[path.slice(site.length + 1)] = await readFile(path, 'utf8')
  }
  files['app/layout.js'] = `export default function Layout({ children }) {
  return <html lang="en"><body>{children}</body></html>
}
`
  files['app/page.js'] = page('first')
  return files
}

export const page = (text: string) => `export default function Page() {
  return <main>${text}</main>
}
`

/** Replaces the starter if nothing can be fetched. */
export const smallServer: Record<string, string> = {
  'package.json': JSON.stringify({
    name: 'site',
    version: '1.0.0',
    private: true,
    scripts: { build: 'cp app/page.js built.js', start: 'exec node server.mjs' },
  }),
  'server.mjs':
    "import { createServer } from 'node:http'\ncreateServer((_, response) => response.end('ok')).listen(process.env.PORT)\n",
  'app/page.js': page('first'),
}
