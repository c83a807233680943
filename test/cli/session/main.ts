// `npm run docs:cli`: types every command into a terminal of 100 columns, and writes what came into docs/cli.md.
import { execFileSync, spawn } from 'node:child_process'
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { buildParts } from '../../../build/parts.ts'
import { createApproval, startWorld } from './world.ts'

const root = join(import.meta.dirname, '../../..')
const document = join(root, 'docs/cli.md')
const [begin, end] = ['<!-- session: npm run docs:cli -->', '<!-- end of the session -->']

await buildParts(['cli'])
const world = await startWorld()
const home = join(world.directory, 'home')
const env = { PATH: process.env.PATH, HOME: home, TERM: 'xterm', NO_COLOR: '1' }
const shown: string[] = []
const maxMs = 120_000

type Expected = {
  code?: number
  /** Called with all that came so far. */
  onOutput?(text: string): void
  /** Typed once this was asked. */
  answers?: [RegExp, string][]
  /** Ctrl-C is typed once this has come. */
  until?: RegExp
}

/** What a terminal shows of it in the end: lines that were written over are not there. */
function asShown(text: string): string {
  const shown = (line: string) => stripVTControlCharacters(line.slice(line.lastIndexOf('\r') + 1)).trimEnd()
  // Readline returns to the first column in its own way.
  return text.replace(/\r+\n/g, '\n').replaceAll('\u001b[1G', '\r').split('\n').map(shown).join('\n').trim()
}

async function type(command: string, expected: Expected = {}): Promise<string> {
  const { code = 0, onOutput, answers = [], until } = expected
  const line = `stty cols 100 rows 40; ${command.replace(/\bberth\b/, `'${process.execPath}' '${join(home, 'berth')}'`)}`
  const child = spawn('script', ['-qec', line, '/dev/null'], { cwd: home, env, stdio: ['pipe', 'pipe', 'inherit'] })
  let text = ''
  let interrupted = false
  const left = [...answers]
  child.stdout.on('data', (chunk) => {
    text += chunk
    onOutput?.(text)
    if (left[0]?.[0].test(text)) child.stdin.write(`${left.shift()![1]}\n`)
    if (until?.test(text) && !interrupted) {
      interrupted = true
      child.stdin.write('\u0003')
    }
  })
  const stuck = setTimeout(() => child.kill(), maxMs)
  const [ended] = (await once(child, 'close')) as [number]
  clearTimeout(stuck)
  const output = asShown(text)
  console.error(`$ ${command}\n${output}`)
  if (ended !== (until ? 130 : code)) throw new Error(`${command} ended with ${ended}:\n${output}`)
  return output
}

/** Most output is left out, or all but its first `lines`, to keep the page short. */
async function show(command: string, { lines = 0, ...expected }: Expected & { lines?: number } = {}) {
  const output = await type(command, expected)
  shown.push(`$ ${command}`, ...(output === '' ? [] : output.split('\n').slice(0, lines)))
  return output
}

/** Types one command while another one waits for what it does. */
async function meanwhile(waiting: string, expected: { ready?: RegExp; until: RegExp }, command: string): Promise<void> {
  const { ready, until } = expected
  let began = () => {}
  const isReady = new Promise<void>((resolve) => {
    began = resolve
  })
  const ended = type(waiting, { until, onOutput: (text) => ready?.test(text) && began() })
  if (ready) await Promise.race([isReady, ended])
  // Nothing tells that the stream is open.
  await new Promise((resolve) => setTimeout(resolve, 4_000))
  shown.push(`$ ${waiting} &`)
  await show(command)
  shown.push(await ended)
}

const git = (...args: string[]) => {
  const author = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com']
  return execFileSync('git', [...author, ...args], { cwd: join(home, 'site'), encoding: 'utf8' }).trim()
}
const repositoryOf = (name: string) => join(world.directory, `data/repos/ada/${name}.git`)

/** A repository of the platform's own folder of these. */
async function makeRepository(name: string): Promise<void> {
  await mkdir(repositoryOf(name), { recursive: true })
  git('init', '-q', '-b', 'main')
  git('add', 'index.html', 'style.css')
  git('commit', '-q', '-m', 'first')
  git('clone', '-q', '--bare', '.', repositoryOf(name))
}

/** Tells of a pull request from a fork, as GitHub does. */
async function openPullRequest(name: string, title: string): Promise<void> {
  git('commit', '-q', '--allow-empty', '-m', title)
  git('push', '-q', repositoryOf(name), 'HEAD:refs/pull/7/head')
  const hook = (await (await world.call('POST', `/api/projects/${name}/hook`)).json()) as {
    url: string
    secret: string
  }
  const head = { ref: 'greeting', sha: git('rev-parse', 'HEAD'), repo: { full_name: `eve/${name}` } }
  const request = { number: 7, title, updated_at: new Date().toISOString(), head }
  const repository = { full_name: `ada/${name}` }
  const body = JSON.stringify({ action: 'opened', number: 7, pull_request: request, repository })
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'pull_request',
    'x-github-delivery': randomUUID(),
    'x-hub-signature-256': `sha256=${createHmac('sha256', hook.secret).update(body).digest('hex')}`,
  }
  const answer = await fetch(hook.url, { method: 'POST', headers, body })
  if (!answer.ok) throw new Error(`The pull request was not taken: ${await answer.text()}`)
}

try {
  await mkdir(join(home, 'site'), { recursive: true })
  await writeFile(join(home, 'site/index.html'), '<h1>Hello</h1>\n')
  await writeFile(join(home, 'site/style.css'), 'h1 { color: teal }\n')
  await writeFile(join(home, 'site/.env'), 'SECRET=1\n')
  await mkdir(join(home, 'blog'))
  await writeFile(join(home, 'blog/index.html'), '<h1>Blog</h1>\n')
  await mkdir(join(home, 'landing'))
  await writeFile(join(home, 'landing/index.html'), '<h1>Landing</h1>\n')
  await writeFile(join(home, 'example.zone'), '@ MX 10 mail.example.com.\nmail A 192.0.2.25\nwww CNAME example.com.\n')
  await writeFile(join(home, 'berth'), await (await fetch(`${world.url}/cli`)).text())
  const approve = await createApproval(world)
  let approved: Promise<void> | undefined
  await show('berth login', {
    onOutput(text) {
      const code = /approve the code ([A-Z]{4}-[A-Z]{4})/.exec(text)?.[1]
      if (code) approved ??= approve(code)
    },
  })
  await approved
  await show('berth whoami')
  await type('berth deploy blog --prebuilt', { answers: [[/\[Y\/n\]/, '']] })
  await show('berth deploy landing --prebuilt --yes', { lines: 2 })
  await show('berth projects create site --framework static')
  await show('berth link site')
  const first = await show('berth deploy site --prebuilt --prod')
  const [id] = /dpl_\w+/.exec(first)!
  await writeFile(join(home, 'site/index.html'), '<h1>Hello again</h1>\n')
  const second = await type('berth deploy site --prebuilt')
  const [preview] = /dpl_\w+/.exec(second)!
  await show('berth ls')
  await show(`berth inspect ${preview} --wait`)
  await show(`berth promote ${preview}`)
  await show('berth rollback', { lines: 20 })
  await show('berth logs')
  await show('berth deploy site --prebuilt --prod; echo "exit code $?"', { lines: 20 })
  await show('berth projects ls')
  await type(`berth promote ${preview}`)
  await type(`berth promote ${id} --pin`)
  await show('berth redeploy --prod', { code: 8 })
  await show('berth open')
  await show('berth settings')
  await show('berth settings set cleanUrls=false outputDirectory=public hsts=true')
  await show('berth settings unset outputDirectory')
  await type('berth settings unset cleanUrls hsts')
  await show('berth env set GREETING hello')
  await show('berth env set API_KEY --secret', { answers: [[/Value of API_KEY/, 'k3y']] })
  await show('berth env ls')
  await show('berth env pull')
  await show('berth env rm GREETING', { answers: [[/\[y\/N\]/, 'y']] })
  await show('berth domains add example.com --wait', { lines: 20 })
  await show('berth domains verify example.com')
  await show('berth domains ls')
  await show('berth dns set example.com www A 192.0.2.1 192.0.2.2 --ttl 300')
  await show('berth dns ls example.com')
  await show('berth dns rm example.com www A', { answers: [[/\[y\/N\]/, 'y']] })
  await show('berth dns import example.com example.zone --dry-run', { lines: 20 })
  await type('berth dns import example.com example.zone', { answers: [[/\[y\/N\]/, 'y']] })
  await show('berth dns export example.com')
  await show('berth dns dnssec example.com')
  await makeRepository('shop')
  await type('berth projects create shop --repo ada/shop')
  const made = await show('berth hooks add nightly -p shop')
  const [hookUrl] = /http\S+\/hooks\/deploy\/\S+/.exec(made)!
  await type(`curl -fsS -X POST ${hookUrl} -o /dev/null`)
  const hooks = await show('berth hooks ls -p shop')
  await show('berth logs -f -p shop')
  await type('berth deploy --ref main --prod -p shop')
  await type("berth settings set buildCommand='sleep 300' outputDirectory=. -p shop")
  await show('berth deploy --ref main --no-wait -p shop')
  await show('berth cancel -p shop')
  await type('berth settings unset buildCommand outputDirectory -p shop')
  await openPullRequest('shop', 'Greet everyone')
  await show('berth pull-requests -p shop')
  const building = await show('berth approve 7 -p shop', { answers: [[/\[y\/N\]/, 'y']] })
  await type(`berth logs -f ${/dpl_\w+/.exec(building)![0]} -p shop`)
  await show(`berth hooks rm ${/dhk_\w+/.exec(hooks)![0]} -p shop`, { answers: [[/\[y\/N\]/, 'y']] })
  const crons = JSON.stringify({ settings: { crons: [{ path: '/', schedule: '0 6 * * *' }] } })
  await type(`berth api /projects/shop -X PATCH -d '${crons}' > /dev/null`)
  await show('berth crons ls -p shop')
  await show('berth tokens create ci --scope deployments:write projects:read --project site --expires 30d')
  const tokens = await show('berth tokens ls')
  await show(`berth tokens rm ${/(tok_\w+) +ci /.exec(tokens)![1]}`, { answers: [[/\[y\/N\]/, 'y']] })
  await type("berth tickets open 'A question' -m 'How long are logs kept?'")
  const tickets = await show('berth tickets ls')
  const [ticket] = /tkt_\w+/.exec(tickets)!
  await show(`berth tickets reply ${ticket} -m 'And of builds?'`)
  await show(`berth tickets show ${ticket}`)
  await meanwhile(
    'berth events -f --type ticket.*',
    { until: /ticket\.\w+/ },
    "berth tickets open 'Another one' -m 'And events?'",
  )
  const receiver = createServer((request, response) => request.resume().on('end', () => response.end()))
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const { port } = receiver.address() as AddressInfo
  await meanwhile(
    `berth listen --forward-to http://localhost:${port}/hooks --type project.*`,
    { ready: /Sending events/, until: /200 .*project\./ },
    'berth api /projects/site -X PATCH -f settings.cleanUrls=true > /dev/null',
  )
  receiver.close()
  await show('berth completion bash | head -1')
  await show('berth projects rename blog notes')
  await show('berth projects rm notes', { answers: [[/\[y\/N\]/, 'y']] })
  await show('berth domains rm example.com', { answers: [[/\[y\/N\]/, 'y']] })
  await show('berth logout')
  const text = await readFile(document, 'utf8')
  const [before, after] = [text.indexOf(begin), text.indexOf(end)]
  if (before < 0 || after < 0) throw new Error(`${document} has no place for the session.`)
  const session = shown
    .join('\n')
    .replaceAll(home, '/home/ada')
    .replace(/(\/hooks\/deploy\/)[\w-]{12,}/g, '$1…')
    .replace(/(whsec_|brt_)[A-Za-z0-9+/=_-]{12,}/g, '$1…')
  await writeFile(document, `${text.slice(0, before + begin.length)}\n\`\`\`\n${session}\n\`\`\`\n${text.slice(after)}`)
} finally {
  await world.stop()
}
