// Cursors that are not ours, and doubled or unknown parameters: a list refuses them and tells why.
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { encodeCursor } from '../../src/platform/database/page.ts'
import type { Operation } from '../access/operations.ts'
import { startHarness } from './harness.ts'

const { api, operations, freshForAll, refused, expectUntouched } = await startHarness()
afterAll(() => api.stop())
afterEach(expectUntouched)

const lists = operations.filter(({ query }) => query.some(({ name }) => name === 'cursor'))
const targets = await freshForAll(lists)

function read(operation: Operation, query: string) {
  const { path, owner } = targets.get(operation)!
  return refused({ method: 'GET', path: `${path}?${query}`, token: owner.token })
}

/** The word under which the list stands in its answer, as its cursors name it. */
async function wordOf(operation: Operation): Promise<string> {
  const { body } = await read(operation, 'limit=1')
  return Object.keys(body).find((key) => Array.isArray(body[key]))!
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

test('there are lists with cursors', () => expect(lists.length).toBeGreaterThan(8))

describe.each(lists)('$name', (operation) => {
  test('refuses a cursor that is random, cut off or of another shape with 400', async () => {
    const word = await wordOf(operation)
    const whole = encodeCursor(word, 'desc', ['x'])
    const cursors = [
      ...[
        '',
        'x',
        '0',
        '-1',
        'null',
        '=',
        '====',
        '%00',
        'AA',
        'AAAA',
        '!!',
        '😀',
        '__proto__',
        whole.slice(0, -5),
        whole.slice(3),
      ],
      ...[
        null,
        1,
        'x',
        {},
        [],
        [[]],
        [word],
        [word, 'asc'],
        [word, 'desc'],
        [word, null, 'x'],
        [word, 'ASC', 'x'],
        ['', '', ''],
      ],
    ].map((item, index) => (index < 15 ? String(item) : encode(item)))
    const wrongTypes = ['asc', 'desc'].flatMap((order) =>
      [1, null, true, {}, [], ['x'], '\0', 'a\0', '\ud800', 'x'.repeat(601)].flatMap((key) =>
        [1, 2, 3].map((count) => encode([word, order, key, ...Array(count - 1).fill('x')])),
      ),
    )
    for (const cursor of [...cursors, ...wrongTypes, Buffer.from('\0').toString('base64url')]) {
      const answer = await read(operation, `cursor=${encodeURIComponent(cursor)}`)
      expect(answer, cursor).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } })
    }
  })

  test('refuses a cursor of another list or another order with 400', async () => {
    const word = await wordOf(operation)
    const strange =
      lists.length > 0 ? ['projects', 'deployments', 'tokens', 'events', 'lines', 'records', 'nothing'] : []
    for (const other of strange.filter((name) => name !== word)) {
      for (const order of ['asc', 'desc'] as const) {
        for (const keys of [['x'], ['x', 'y'], ['x', 'y', 'z']]) {
          const answer = await read(operation, `cursor=${encodeCursor(other, order, keys)}`)
          expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } })
        }
      }
    }
    if (!operation.query.some(({ name }) => name === 'order')) return
    for (const [order, other] of [
      ['asc', 'desc'],
      ['desc', 'asc'],
    ] as const) {
      for (const keys of [['x'], ['x', 'y'], ['x', 'y', 'z']]) {
        const { status } = await read(operation, `order=${order}&cursor=${encodeCursor(word, other, keys)}`)
        expect(status).toBe(400)
      }
    }
  })

  test('takes or refuses a well-formed cursor whose keys are made up, and shows nobody else’s items', async () => {
    const word = await wordOf(operation)
    const keys = [
      '',
      ' ',
      '~',
      'zzz',
      "' OR 1=1 --",
      '%',
      '-1',
      '999999999',
      '9999999999',
      '1e5',
      '٣',
      '😀',
      'x'.repeat(400),
    ]
    for (const order of ['asc', 'desc'] as const) {
      for (const key of keys) {
        for (const count of [1, 2, 3]) {
          const { status, body } = await read(operation, `cursor=${encodeCursor(word, order, Array(count).fill(key))}`)
          expect([200, 400]).toContain(status)
          if (status === 200) expect(body[word].length).toBeLessThanOrEqual(20)
        }
      }
    }
  })

  test('refuses a cursor that is too long, a parameter sent twice, and one it does not know, each by its name', async () => {
    // Some take several values, of which many are free text.
    const once = operation.query.filter(({ schema }) => schema.type !== 'array' || schema.items.enum)
    const twice = once.map(({ name }) => [`${name}=a&${name}=b`, name] as const)
    const unknown = [
      'colour',
      '__proto__',
      'constructor',
      'toString',
      'LIMIT',
      'limit[]',
      'limit%5Bgt%5D',
      'offset',
      'page',
      '',
    ]
    const cases = [[`cursor=${'a'.repeat(2001)}`, 'cursor'] as const, ...twice]
    for (const [query, name] of cases) {
      const answer = await read(operation, query)
      expect(answer.status, query).toBe(422)
      expect(answer.body.errors, query).toContainEqual(expect.objectContaining({ in: 'query', pointer: `#/${name}` }))
    }
    for (const name of unknown) {
      const answer = await read(operation, `${name}=1`)
      expect(answer.status, name).toBe(422)
      expect(answer.body.errors[0]).toMatchObject({ in: 'query', code: 'unknown_field' })
    }
  })

  test('refuses every limit that is no whole number within its bounds', async () => {
    const limits = [
      '0',
      '-1',
      '1001',
      '1e309',
      '9007199254740993',
      '1.5',
      'ten',
      '1e1x',
      ' ',
      '',
      '١',
      'null',
      'true',
      '%00',
      '+',
      'Infinity',
      'NaN',
    ]
    for (const limit of limits) expect((await read(operation, `limit=${limit}`)).status, limit).toBe(422)
  })
})
