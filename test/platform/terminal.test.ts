// What a person at a terminal sees: short lines, and one that says what is being done, which no line runs into.
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { openTerminal } from '../../src/platform/observe/terminal.ts'

function open(options: { isTTY?: boolean; colour?: boolean } = {}) {
  const { isTTY = true, colour = false } = options
  let text = ''
  const terminal = openTerminal({ isTTY, write: (chunk) => (text += chunk) }, { colour })
  const log = pino({ level: 'debug' }, terminal)
  return { terminal, log, text: () => text.replace(/\d\d:\d\d:\d\d/g, '12:00:00') }
}

test('a line has the time, the message and the useful fields, and names its level unless it is ordinary', () => {
  const { log, text } = open()
  log.info({ requestId: 'req_1', names: ['a.test'], issuer: 'CN=x', gone: null }, 'a certificate was issued')
  log.warn('the disk is almost full')
  log.debug({ status: 200 }, 'request')
  expect(text()).toBe(
    '12:00:00 a certificate was issued names=["a.test"] issuer=CN=x\n' +
      '12:00:00 WARN the disk is almost full\n' +
      '12:00:00 request status=200\n',
  )
})

test('an error is told with its reason and its stack, a warning with its reason alone', () => {
  const { log, text } = open()
  const err = new Error('no such file')
  log.warn({ err }, 'the page was not read')
  log.error({ err }, 'the page was not read')
  const [first, second, frame] = text().split('\n')
  expect(first).toBe('12:00:00 WARN the page was not read: no such file')
  expect(second).toBe('12:00:00 ERROR the page was not read: no such file')
  expect(frame).toMatch(/^ +at /)
})

test('colours are for terminals, where they are wanted', () => {
  const outputs = [open({ colour: true }), open({ colour: false }), open({ colour: true, isTTY: false })]
  for (const { log } of outputs) log.error({ status: 500 }, 'failed')
  const [coloured, plain, piped] = outputs.map(({ text }) => text())
  expect(coloured).toBe('\x1b[2m12:00:00\x1b[0m \x1b[31mERROR\x1b[0m failed \x1b[2mstatus=500\x1b[0m\n')
  expect(plain).toBe('12:00:00 ERROR failed status=500\n')
  expect(piped).toBe(plain)
})

test('what strangers send moves no cursor, and is cut where it is long', () => {
  const { log, text } = open()
  log.info({ path: `/\x1b[2J\r\n\u202e${'x'.repeat(200)}` }, 'request\x1b]0;title\x07')
  expect(text()).toBe(`12:00:00 request·]0;title· path=/·[2J···${'x'.repeat(92)}…\n`)
})

test('the status is one line that is replaced, stays below log lines, and leaves nothing behind', () => {
  const { terminal, log, text } = open()
  terminal.status('Creating the database…')
  terminal.status('Applying migrations…')
  terminal.status('Applying migrations…')
  log.info('done')
  terminal.status(null)
  expect(text().split('\r\x1b[K')).toEqual([
    '',
    'Creating the database…',
    'Applying migrations…',
    '12:00:00 done\nApplying migrations…',
    '',
  ])
})

test('there is no status without a terminal', () => {
  const { terminal, text } = open({ isTTY: false })
  terminal.status('Starting…')
  terminal.status(null)
  expect(text()).toBe('')
})
