// A server that no longer answers is taken out and started again; one that is merely busy is not.
import { expect, test } from 'vitest'
import { watchLiveness } from '../../../src/engines/servers/run/liveness.ts'
import { until } from '../../helpers/until.ts'
import { withEachDriverAtOnce } from './world.ts'

/** Each probe answers as the list says; null: the server sends something else meanwhile. */
async function heardOf(answers: (boolean | null)[], failures: number): Promise<unknown[]> {
  const heard: unknown[] = []
  let probes = 0
  let receivedBytes = 0
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  const instance = {
    ended,
    get receivedBytes() {
      return receivedBytes
    },
    async responds() {
      const answer = answers[probes++]
      if (answer === null) receivedBytes++
      if (probes === answers.length) end('over')
      return answer === true
    },
  }
  watchLiveness(instance, { everyMs: 1, answerMs: 1_000, failures }, (silence) => {
    heard.push(typeof silence === 'object' && silence ? 'lost' : silence)
    if (heard.at(-1) === 'lost') end('lost')
  })
  await ended
  return [probes, ...heard]
}

test.each([
  ['answers', [true, true, true], [3]],
  ['misses one probe', [true, false, true, true], [4, 'short', null]],
  ['misses two now and then', [false, false, true, false, false, true, true], [7, 'short', null, 'short', null]],
  ['misses three in a row', [true, false, false, false, true], [4, 'short', 'lost']],
  [
    'answers no probe, but works on something',
    [null, false, null, false, null, true],
    [6, 'short', null, 'short', null],
  ],
] as const)('a server that %s', async (_what, answers, heard) => {
  expect(await heardOf([...answers], 3)).toEqual([...heard])
})

/** Tells which run it is, and how often it was asked for `/`, by probes too. */
const program = (more: string) => `
import { createServer } from 'node:http'
const pause = new Int32Array(new SharedArrayBuffer(4))
const run = crypto.randomUUID()
let asked = 0
createServer((request, answer) => {
  if (request.url === '/block') Atomics.wait(pause, 0, 0)
  if (request.url === '/') asked++
  ${more}
  answer.end(run + ' ' + asked)
}).listen(process.env.PORT, process.env.HOST)`

withEachDriverAtOnce('a server', (test) => {
  const liveness = { everyMs: 20, answerMs: 1_000, failures: 2 }

  test('that hangs is stopped and started again by itself, and its log says why', async ({ start }) => {
    const states: string[] = []
    const onState = (_key: string, state: string) => void states.push(state)
    const world = await start({ liveness, restartDelaysMs: [50] }, { onState })
    await world.deploy('site', program(''))
    world.show('site')
    await world.servers.ready('site')
    const runNow = async () => (await world.get('/which')).text.split(' ')[0]
    const before = await runNow()
    void world.get('/block').catch(() => {})
    const why = 'The server gave no answer 2 times, each within 1 s; it is started again in 0.05 s'
    await until(() => world.lines('site').includes(why))
    expect(await runNow()).not.toBe(before)
    // Edges were told before it was given up.
    expect(states.join(' ')).toContain('starting starting healthy')
  })

  test('that answers every probe with an error is alive', async ({ start }) => {
    const world = await start({ liveness })
    await world.deploy('site', program("if (request.url === '/' && asked > 1) answer.statusCode = 500"))
    world.show('site')
    await world.servers.ready('site')
    const [run] = (await world.get('/which')).text.split(' ')
    const asked = async () => (await world.get('/which')).text.split(' ') as [string, string]
    await until(async () => Number((await asked())[1]) > 5)
    expect((await asked())[0]).toBe(run)
  })
})
