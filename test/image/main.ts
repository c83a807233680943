// `npm run test:image`: builds the image, starts every role as compose.yaml says, deploys a site and a server, and stops all.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { roles } from '../../src/roles/run.ts'
import { until } from '../helpers/until.ts'
import { buildImage, makeBase, sizeOf } from './build.ts'
import { containerOf, isHealthy, logsOf, type Machine, podman, runToEnd, start, tryPodman } from './podman.ts'
import { ask, visit } from './visitor.ts'
import { openWorld } from './world.ts'
import { tryWrongSetups } from './wrong.ts'

const startMs = 120_000
const began = performance.now()
const say = (line: string) =>
  console.log(`${String(Math.round((performance.now() - began) / 1000)).padStart(5)} s  ${line}`)
const image = 'berth'

const scratch = await mkdtemp(join(tmpdir(), 'berth-build-'))
try {
  await makeBase(scratch)
  say('the base is there')
  await buildImage(scratch, image)
  say(`the image is built, ${await sizeOf(image)} MB`)
} finally {
  await rm(scratch, { recursive: true, force: true })
}

const world = await openWorld(`berth-image-${process.pid}`)
const { machine } = world
const { address, values } = machine
const inside = (role: string, ...command: string[]) => podman('exec', containerOf(machine, role), ...command)
const logs = (role: string) => logsOf(machine, role)
const started: string[] = []
let failed = false
try {
  await runEverything()
} catch (error) {
  failed = true
  for (const role of started) console.error(`--- ${role}\n${(await logs(role)).split('\n').slice(-40).join('\n')}`)
  throw error
} finally {
  for (const role of started) await tryPodman('rm', '--force', '--volumes', '--time', '0', containerOf(machine, role))
  await world.close()
  if (!failed) say('everything is gone again')
}

async function runEverything(): Promise<void> {
  const migrated = await runToEnd(machine, 'migrate')
  assert.equal(migrated.code, 0, migrated.output)
  say(`migrate ended with 0: ${migrated.output.slice(0, 60)}…`)
  // One after another, as a machine that is busy with other work needs its time for each.
  for (const role of roles) {
    started.push(role)
    await start(machine, role)
    await until(async () => (await isHealthy(machine, role)) || sleep(500, false), startMs)
    say(`${role} is healthy`)
  }
  await checkRights()
  await checkFindings()
  await tryWrongSetups(machine, (line) => say(`refused ${line}`))
  await deploy()
  await stopAll()
}

/** No role is root or has any capability; only worker and runner have more than the runtime's own restrictions allow. */
async function checkRights(): Promise<void> {
  for (const role of roles) {
    assert.equal(await inside(role, 'id', '-u'), '1000')
    const status = await inside(role, 'cat', '/proc/1/status')
    assert.match(status, /^CapEff:\s+0+$/m)
    assert.match(status, /^CapBnd:\s+0+$/m)
    assert.match(status, /^NoNewPrivs:\s+1$/m)
    const masked = / \/proc\/\S+ /.test(await inside(role, 'cat', '/proc/self/mountinfo'))
    assert.equal(masked, !['worker', 'runner'].includes(role), role)
    const touched = await tryPodman('exec', containerOf(machine, role), 'touch', '/berth/written')
    assert.notEqual(touched.code, 0, 'the image is writable')
  }
  say('every role is user 1000, without capabilities, on a file system that it cannot change')
}

/** What was wrong with the image before. */
async function checkFindings(): Promise<void> {
  const nameserver = await logs('nameserver')
  assert.doesNotMatch(nameserver, /without koffi/)
  await inside('nameserver', 'node', '-e', "require('koffi').load(null)")
  for (const name of ['GIT_URL_TEMPLATE', 'ACME_EMAIL']) {
    assert.equal(await inside('worker', 'printenv', name), values[name])
  }
  for (const role of roles) {
    const asked = ['--env', 'METRICS_PORT=1', containerOf(machine, role), 'node', 'dist/src/roles/health.js']
    assert.notEqual((await tryPodman('exec', ...asked)).code, 0, 'health does not ask the metrics port')
  }
  for (const role of ['worker', 'runner']) {
    const warnings = (await logs(role)).split('\n').filter((line) => line.includes('"driver":"bubblewrap"'))
    for (const line of warnings) say(`${role} warns: ${JSON.parse(line).msg}`)
    assert.doesNotMatch(warnings.join(), /slirp4netns/, 'sandboxes have no network of their own')
  }
  say('koffi answers, settings are passed on, health is of each role, sandboxes have their network')
}

async function deploy(): Promise<void> {
  const account = await inside('api', 'node', 'dist/src/cli.js', 'accounts', 'create', 'image')
  const token = /brt_\w+/.exec(account)![0]
  const api = async (method: string, path: string, body?: object) => {
    const host = new URL(values.BASE_URL!).host
    const asked = { address, port: 3000, host, path: `/api${path}`, method, token, body }
    const answer = await visit(asked)
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.body}`)
    return JSON.parse(answer.body)
  }
  // Its certificate is issued by the worker meanwhile.
  await until(() => api('GET', '/account').catch(() => null), startMs)
  say('the API answers over HTTPS at its published port')

  for (const [name, framework, text] of [
    ['site', 'static', 'a static site'],
    ['server', 'node', 'a server project'],
  ] as const) {
    const { productionUrl } = await api('POST', '/projects', { name, framework, repo: `acme/${name}` })
    const { id } = await api('POST', '/deployments', { project: name, production: true })
    const built = await until(async () => {
      const deployment = await api('GET', `/deployments/${id}?wait=30`)
      return deployment.state !== 'BUILDING' && deployment
    }, startMs)
    assert.equal(built.state, 'READY', JSON.stringify(built.error))
    const { host } = new URL(productionUrl)
    const page = await until(async () => {
      const answer = await visit({ address, port: 443, host }).catch(() => null)
      return answer?.status === 200 && answer
    }, startMs)
    assert.match(page.body, new RegExp(text))
    say(`${productionUrl} is served at port 443: ${page.body.trim()}`)
    for (const transport of ['udp', 'tcp'] as const) {
      assert.equal(await ask(address, transport, host), values.EDGE_ADDRESSES)
    }
    say(`${host} is ${values.EDGE_ADDRESSES} over UDP and TCP at port 53`)
  }
  await api('POST', '/domains', { name: 'berth-image-shop.com', project: 'site' })
  await api('POST', '/dns/berth-image-shop.com/records', { type: 'A', name: 'a', value: '192.0.2.7', ttl: 300 })
  assert.equal(
    await until(async () => (await ask(address, 'udp', 'a.berth-image-shop.com')) === '192.0.2.7' && '192.0.2.7'),
    '192.0.2.7',
  )
  const { nameservers } = await api('GET', '/dns/berth-image-shop.com/zone/status')
  assert.deepEqual(
    nameservers.map(({ current }: { current: boolean }) => current),
    [true],
    'the API cannot ask the nameserver',
  )
  say('a record of a new domain is answered, and the API finds the nameserver current')
}

async function stopAll(): Promise<void> {
  for (const role of [...roles].reverse()) {
    await podman('stop', containerOf(machine, role))
    assert.equal(await exitCode(machine, role), '0', `${role}: ${(await logs(role)).slice(-500)}`)
    say(`${role} stopped with 0`)
  }
}

function exitCode(machine: Machine, role: string): Promise<string> {
  return podman('inspect', '--format', '{{.State.ExitCode}}', containerOf(machine, role))
}
