// `npm run test:starters -- vite-react …`: deploys what generators make on a server of its own, and prints a table.
// With --no-hand the same commands are not run by hand, which takes as long again.
import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../helpers/ports.ts'
import { quietDisk } from '../helpers/quiet-disk.ts'
import type { Starter } from './starter.ts'
import { starters } from './starters.ts'

const limitMs = 15 * 60_000
const names = process.argv.slice(2).filter((name) => name !== '--no-hand')
const isCompared = !process.argv.includes('--no-hand')
const unknown = names.filter((name) => !starters.some((starter) => starter.name === name))
if (unknown.length > 0) throw new Error(`There is no starter ${unknown.join(', ')}.`)

type Ran = { code: number | null; output: string; seconds: number }

/** Runs a line of shell to its end; at the limit its whole group is ended. */
function run(line: string, cwd: string): Promise<Ran> {
  const began = performance.now()
  const child = spawn('/bin/sh', ['-c', line], {
    cwd,
    detached: true,
    env: { ...process.env, CI: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => (output = (output + chunk).slice(-4000)))
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), limitMs)
  return new Promise((resolve) => {
    child.on('close', (code) => {
      clearTimeout(timer)
      resolve({ code, output, seconds: (performance.now() - began) / 1000 })
    })
  })
}

async function must(line: string, cwd: string): Promise<Ran> {
  const ran = await run(line, cwd)
  if (ran.code !== 0) throw new Error(`${line}: exited with ${ran.code}\n${ran.output}`)
  return ran
}

const scratch = await mkdtemp(join(tmpdir(), 'berth-starters-'))
const data = join(scratch, 'data')
const [api, edge, https, dns1, dns2, metrics] = await Promise.all(Array.from({ length: 6 }, () => freePort()))
const server = spawn('npx', ['tsx', 'src/cli.ts', 'serve'], {
  detached: true,
  stdio: ['ignore', 'ignore', 'inherit'],
  env: {
    ...process.env,
    DATA_DIR: data,
    PORT: String(api),
    EDGE_HTTP_PORT: String(edge),
    EDGE_HTTPS_PORT: String(https),
    NAMESERVER_LISTEN: `127.0.0.1:${dns1},127.0.0.1:${dns2}`,
    METRICS_PORT: String(metrics),
    DRAIN_SECONDS: '0',
  },
})

// biome-ignore lint/suspicious/noExplicitAny: what the API answers is looked at, whatever its shape.
async function call(method: string, path: string, body?: object): Promise<any> {
  const token = (await readFile(join(data, 'test-key'), 'utf8')).trim()
  const answer = await fetch(`http://127.0.0.1:${api}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  const said = await answer.json()
  if (!answer.ok) throw new Error(JSON.stringify(said))
  return said
}

/** What visitors get: its heading or title, else its first line. */
function bodyOf(text: string): string {
  const heading = /<h1[^>]*>(.+?)<\/h1>/s.exec(text) ?? /<title[^>]*>(.+?)<\/title>/s.exec(text)
  const line = heading?.[1]?.replaceAll(/<[^>]*>/g, '') ?? text.split('\n').find((line) => line.trim() !== '') ?? ''
  return line.trim().replaceAll(/\s+/g, ' ').slice(0, 60)
}

/** What a browser gets. */
function visit(url: string, path = '/'): Promise<{ status: number; body: string }> {
  const { hostname } = new URL(url)
  const headers = { host: `${hostname}:${edge}`, accept: 'text/html' }
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port: edge, path, headers }, async (answer) => {
      let text = ''
      for await (const chunk of answer) text += chunk
      resolve({ status: answer.statusCode!, body: bodyOf(text) })
    }).on('error', reject)
  })
}

async function tryStarter({ name, make, files = {}, after, rootDirectory }: Starter): Promise<string[]> {
  const place = join(scratch, name)
  const app = join(place, 'app')
  await mkdir(make ? place : app, { recursive: true })
  if (make) await must(make, place)
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(app, path)), { recursive: true })
    await writeFile(join(app, path), text)
  }
  if (after) await must(after, app)
  const identity = '-c user.name=starter -c user.email=starter@example.com'
  // Moved aside: a disk on which thousands of files were just removed is slow for whoever writes next.
  await must('mkdir ../aside; for one in .git node_modules; do test ! -e $one || mv $one ../aside/; done', app)
  await must(`git init -q -b main && git add -A && git ${identity} commit -q -m first`, app)
  await must(`mkdir -p '${data}/repos/starters' && git clone -q --bare app '${data}/repos/starters/${name}.git'`, place)
  await call('POST', '/projects', {
    name,
    repo: `starters/${name}`,
    ...(rootDirectory && { settings: { rootDirectory } }),
  })
  await quietDisk()
  const made = await call('POST', '/deployments', { project: name, production: true })
  let deployment = made
  while (deployment.state === 'BUILDING') deployment = await call('GET', `/deployments/${made.id}?wait=30`)
  if (deployment.state !== 'READY')
    console.error(deployment.error, await call('GET', `/deployments/${made.id}/logs?limit=1000`))
  const { detected } = deployment
  const seconds = (Date.parse(deployment.finishedAt) - Date.parse(deployment.startedAt)) / 1000
  const home = deployment.state === 'READY' ? await visit(deployment.url) : null
  const body = home ? `${home.status} ${home.body}` : deployment.error.message.split('\n')[0]
  // A router in the browser may know the path, the server does not.
  const other = home && (await visit(deployment.url, '/no/such/page'))
  const route = other && (other.body === home.body ? `${other.status}, the app` : other.status)
  const hand = await byHand(app, place, rootDirectory ?? '', detected)
  const started = detected?.startCommand ?? detected?.output
  const facts = [
    detected?.framework,
    detected?.kind,
    detected?.packageManager ?? '–',
    detected?.buildCommand ?? '–',
    started,
  ]
  return [name, ...facts, deployment.state, `${seconds.toFixed(1)} s`, hand, `\`${body}\``, String(route ?? '–')]
}

/** The same commands in a copy, with caches of their own. A package manager that is not installed here is fetched, as a build does. */
async function byHand(
  app: string,
  place: string,
  rootDirectory: string,
  detected: { packageManager: string; buildCommand: string | null } | null,
) {
  if (!isCompared || !detected?.packageManager) return '–'
  const copy = join(place, 'copy')
  await cp(app, copy, { recursive: true })
  const [manager, version] = detected.packageManager.split('@')
  const fetched = `npx --yes ${manager === 'yarn' && !version?.startsWith('1.') ? '@yarnpkg/cli-dist' : manager}@${version}`
  const program = manager === 'npm' ? 'npm' : fetched
  const install = manager === 'npm' ? 'npm install --no-audit --no-fund' : `${fetched} install`
  const { buildCommand } = detected
  const build = buildCommand?.replaceAll(new RegExp(`(^|&& )${manager} `, 'g'), `$1${program} `)
  const caches = [
    'npm_config_cache',
    'npm_config_store_dir',
    'YARN_CACHE_FOLDER',
    'YARN_GLOBAL_FOLDER',
    'BUN_INSTALL_CACHE_DIR',
  ]
  const set = caches.map((name) => `export ${name}='${place}/caches/${name}'`).join('; ')
  const line = build ? `${install} && cd './${rootDirectory}' && ${build}` : install
  await quietDisk()
  const { code, seconds, output } = await run(`${set}; ${line}`, copy)
  if (code !== 0) console.error(`${line}: ${output}`)
  return code === 0 ? `${seconds.toFixed(1)} s` : `failed (${code})`
}

let failed = false
try {
  const untilMs = Date.now() + 600_000
  while (
    !(await call('GET', '/projects').then(
      () => true,
      () => false,
    ))
  ) {
    if (Date.now() > untilMs) throw new Error('The server did not start.')
    await sleep(500)
  }
  console.log(
    '| starter | framework | kind | manager | build | output or start | state | time | by hand | body | unknown path |',
  )
  console.log('|---|---|---|---|---|---|---|---|---|---|---|')
  const wanted = names.map((name) => starters.find((starter) => starter.name === name)!)
  for (const starter of names.length === 0 ? starters : wanted) {
    const row = await tryStarter(starter).catch((error: Error) => {
      console.error(`${starter.name}: ${error.message}`)
      return [starter.name, 'could not be made']
    })
    if (!row.includes('READY')) failed = true
    console.log(`| ${row.join(' | ')} |`)
  }
} finally {
  const ended = new Promise((resolve) => server.on('close', resolve))
  process.kill(-server.pid!, 'SIGTERM')
  await ended
  await rm(scratch, { recursive: true, force: true, maxRetries: 3 })
}
process.exitCode = failed ? 1 : 0
