import { afterEach, expect, test, vi } from 'vitest'
import { createOutput, type LogWriter } from '../../../src/engines/servers/instance/output.ts'
import { counted, stepsOf, takesLinearSteps } from '../../helpers/steps/steps.ts'

type Output = typeof import('../../../src/engines/servers/instance/output.ts')
const counting = await counted<Output>('src/engines/servers/instance/output.ts')

afterEach(() => void vi.useRealTimers())

function collect(limits = { bytesPerMinute: 1 << 20, bytes: 10 << 20 }, more: Partial<LogWriter> = {}) {
  const lines: string[] = []
  const write = async (batch: { text: string }[]) => void lines.push(...batch.map(({ text }) => text))
  return { lines, output: createOutput({ write, ...more }, limits) }
}
const bytes = (text: string) => Buffer.from(text)

test('chunks become lines, without escapes and secrets', async () => {
  const { lines, output } = collect()
  output.startRun(['hunter2', 'first line\nsecond line', 'abc'])
  const split = bytes('é is one letter\n')
  output.print('stdout', split.subarray(0, 1))
  output.print('stdout', split.subarray(1))
  output.print('stdout', bytes('the pass is hun'))
  output.print('stderr', bytes('\u001b[31mred\u001b[0m\r\nzero \0 byte\n'))
  output.print('stdout', bytes('ter2\nsecond line of abc\nopen'))
  output.endRun()
  await output.flush()
  expect(lines).toEqual(['é is one letter', 'red', 'zero  byte', 'the pass is ***', '*** of abc', 'open'])
  expect(output.latest()).toEqual(lines)
})

test('a line that is cut within a character can be stored', async () => {
  const { lines, output } = collect()
  output.print('stdout', bytes(`${'x'.repeat(7_999)}😀\n${'y'.repeat(15_999)}`))
  output.print('stdout', bytes(`😀${'z'.repeat(15_998)}\n`))
  await output.flush()
  expect(lines.length).toBe(2)
  for (const line of lines) expect(line.isWellFormed()).toBe(true)
})

test('what comes too fast is dropped with a note, and the next minute goes on', async () => {
  vi.useFakeTimers()
  const { lines, output } = collect({ bytesPerMinute: 1000, bytes: 1 << 20 })
  output.startRun([])
  for (let i = 0; i < 50; i++) output.print('stdout', bytes(`${'x'.repeat(99)}\n`))
  await vi.advanceTimersByTimeAsync(61_000)
  output.print('stdout', bytes('again\n'))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(lines).toHaveLength(13)
  expect(lines.slice(10)).toEqual([
    'The output comes too fast; lines are dropped for the rest of this minute.',
    '40 lines of output were dropped.',
    'again',
  ])
})

test('a log at its limit is cut, or trimmed where that is possible', async () => {
  const limits = { bytesPerMinute: 1 << 20, bytes: 1000 }
  const cut = collect(limits)
  for (let i = 0; i < 50; i++) cut.output.print('stdout', bytes(`${'x'.repeat(99)}\n`))
  cut.output.system('The server exited')
  await cut.output.flush()
  expect(cut.lines).toHaveLength(13)
  expect(cut.lines.slice(11)).toEqual([expect.stringContaining('the rest is cut'), 'The server exited'])
  const trim = vi.fn(async () => {})
  const trimmed = collect(limits, { trim })
  for (let i = 0; i < 50; i++) trimmed.output.print('stdout', bytes(`${'x'.repeat(99)}\n`))
  await trimmed.output.flush()
  expect(trimmed.lines).toHaveLength(50)
  expect(trim).toHaveBeenCalledExactlyOnceWith(1000)
})

test('lines that could not be written are written later, in order', async () => {
  vi.useFakeTimers()
  const lines: string[] = []
  let fails = 2
  const write: LogWriter['write'] = async (batch) => {
    if (fails-- > 0) throw new Error('the database is away')
    lines.push(...batch.map(({ text }) => text))
  }
  const output = createOutput({ write }, { bytesPerMinute: 1 << 20, bytes: 10 << 20 })
  output.print('stdout', bytes('one\n'))
  await vi.advanceTimersByTimeAsync(1_000)
  output.print('stdout', bytes('two\n'))
  await vi.advanceTimersByTimeAsync(10_000)
  expect(lines).toEqual(['one', 'two'])
})

test('a line costs steps in proportion to its length, whatever escapes it begins and never ends', async () => {
  const output = counting.createOutput({ write: async () => {} }, { bytesPerMinute: 1 << 20, bytes: 10 << 20 })
  for (const begin of ['\u001b]', '\u001b[', '\u001b[;1', '\u009b', '\u001b](']) {
    await takesLinearSteps(1 << 10, (size) => {
      output.print('stdout', bytes(`${begin.repeat(size / begin.length)}\n`))
    })
  }
})

test('lines cost hardly more with many secrets', async () => {
  const output = counting.createOutput({ write: async () => {} }, { bytesPerMinute: 1 << 20, bytes: 10 << 20 })
  await takesLinearSteps(1_000, (count) => {
    output.startRun([Array.from({ length: count }, (_, i) => `secret ${i}`).join('\n')])
    output.print('stdout', bytes('secret\n'.repeat(count)))
  })
})

test('lines that come too fast are dropped in one step, and the note says how many', async () => {
  vi.useFakeTimers()
  const { lines, output } = collect()
  const size = 1 << 20
  output.print('stdout', bytes(`${'\n'.repeat(size)}one\ntwo\nthr`))
  output.print('stdout', bytes('ee\nopen'))
  expect(output.latest()).toEqual(['', '', '', '', '', '', '', 'one', 'two', 'three'])
  await vi.advanceTimersByTimeAsync(61_000)
  output.print('stdout', bytes(' end\n'))
  await vi.advanceTimersByTimeAsync(1_000)
  const kept = lines.filter((text) => text === '').length
  // Every one is a row.
  expect(kept).toBeLessThan(20_000)
  expect(lines.slice(kept)).toEqual([
    expect.stringContaining('too fast'),
    `${size + 3 - kept} lines of output were dropped.`,
    'open end',
  ])
})

test('a read costs hardly more steps for being all empty lines', async () => {
  const spend = (read: string) => {
    const output = counting.createOutput({ write: async () => {} }, { bytesPerMinute: 1 << 20, bytes: 10 << 20 })
    return stepsOf(() => {
      for (let n = 0; n < 32; n++) output.print('stdout', bytes(read))
    })
  }
  const plain = await spend(`${'x'.repeat(127)}\n`.repeat(512))
  expect(await spend('\n'.repeat(64 << 10))).toBeLessThan(2 * plain)
})
