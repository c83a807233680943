// The deployed sites: a static site, and a small Vite project with a lockfile.
import { createHash } from 'node:crypto'

export type Files = Record<string, string>

const words = 'harbour pier crane buoy anchor ballast cargo deck keel mast rudder stern tide wharf'.split(' ')

/** Text of this length, different for every seed, that compresses like prose. */
function prose(seed: string, bytes: number): string {
  let text = ''
  for (let i = 0; text.length < bytes; i++) {
    for (const byte of createHash('sha256').update(`${seed} ${i}`).digest()) {
      text += `${words[byte % words.length]}${byte > 230 ? byte : ''} `
    }
    text += '\n'
  }
  return text.slice(0, bytes)
}

/** Incompressible text of this length, like pictures. */
function noise(seed: string, bytes: number): string {
  let text = ''
  for (let i = 0; text.length < bytes; i++) text += createHash('sha512').update(`${seed} ${i}`).digest('base64')
  return text.slice(0, bytes)
}

/** 60 files, 1.5 MB: pages, scripts, styles and pictures. Seeds share no files, so nothing is already stored. */
export function staticSite(seed: string): Files {
  const files: Files = {
    'index.html': page(seed, 'index'),
    '404.html': page(seed, '404'),
    'style.css': prose(`${seed} css`, 20_000),
  }
  for (let i = 0; i < 27; i++) files[`guide/page-${i}.html`] = page(seed, `page ${i}`)
  for (let i = 0; i < 5; i++) files[`scripts/part-${i}.js`] = `/* ${prose(`${seed} js ${i}`, 40_000)} */\n`
  for (let i = 0; i < 25; i++) files[`pictures/${i}.png`] = noise(`${seed} ${i}`, 40_000)
  return files
}

function page(seed: string, name: string): string {
  return `<!doctype html><title>${name}</title><p>${prose(`${seed} ${name}`, 8_000)}</p>\n`
}

// The newest major version whose packages every mirror has; the lockfile pins the rest.
export const vitePackage = `${JSON.stringify(
  {
    name: 'site',
    version: '1.0.0',
    private: true,
    type: 'module',
    scripts: { build: 'vite build' },
    devDependencies: { vite: '^7.0.0' },
  },
  null,
  2,
)}\n`

export function viteSite(seed: string, lockfile: string): Files {
  return {
    'package.json': vitePackage,
    'package-lock.json': lockfile,
    'index.html':
      '<!doctype html><title>site</title><div id="app"></div><script type="module" src="/main.js"></script>\n',
    'main.js': `import './style.css'\nimport { text } from './text.js'\ndocument.querySelector('#app').textContent = text\n`,
    'text.js': `export const text = ${JSON.stringify(prose(seed, 2_000))}\n`,
    'style.css': 'body { font: 18px/1.6 system-ui, sans-serif }\n',
  }
}

/** Replaces the Vite project if nothing can be fetched. */
export function copiedSite(seed: string): Files {
  const scripts = { build: 'mkdir -p dist && cp index.html dist' }
  return {
    'package.json': JSON.stringify({ name: 'site', version: '1.0.0', private: true, scripts }),
    'index.html': page(seed, 'index'),
  }
}
