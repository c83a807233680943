import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createQuieting } from '../../src/platform/observe/quiet-log.ts'

function startLog() {
  const clock = { ms: 0 }
  const lines: { level: number; msg: string; omitted?: number; task?: string }[] = []
  const hooks = { logMethod: createQuieting(() => clock.ms) }
  const log = pino({ hooks }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  return { log, lines, clock }
}

const lost = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' })

test('an outage is logged once a minute by each message, and the next one counts what was left out', () => {
  const { log, lines, clock } = startLog()
  for (let second = 0; second < 40; second++) {
    clock.ms = second * 1_000
    for (const task of ['sweep', 'trim']) log.warn({ err: lost, task }, 'a task could not be taken')
    log.child({ role: 'worker' }).error({ err: lost }, 'jobs cannot be taken')
  }
  expect(lines.map(({ msg, task }) => [msg, task])).toEqual([
    ['a task could not be taken', 'sweep'],
    ['jobs cannot be taken', undefined],
  ])
  clock.ms = 60_000
  log.warn({ err: lost, task: 'trim' }, 'a task could not be taken')
  expect(lines[2]).toMatchObject({ msg: 'a task could not be taken', omitted: 79, task: 'trim' })
})

test('so are requests that are shed', () => {
  const { log, lines } = startLog()
  for (let n = 0; n < 1_000; n++) log.error({ err: new Error('The server is overloaded') }, 'overloaded')
  expect(lines).toHaveLength(1)
})

test('whatever else fails is logged each time', () => {
  const { log, lines } = startLog()
  for (let n = 0; n < 3; n++) {
    log.warn({ err: new Error('no such file') }, 'a file could not be read')
    log.info({ n }, 'a line')
    log.error('words alone')
  }
  expect(lines).toHaveLength(9)
})
