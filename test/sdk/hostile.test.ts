// The SDK against a server whose responses are endless or malformed: an error that says so, and an end.
import { expect, test } from 'vitest'
import { createBerth, InvalidResponse } from '../../sdk/src/index.ts'

const chunk = new Uint8Array(1 << 20).fill(0x20)

/** A client of a server that sends `first` and then 1 MiB after the other, and how many it sent. */
function endless(first: string, init: ResponseInit) {
  const sent = { requests: 0, chunks: 0 }
  const fetch = async () => {
    sent.requests++
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => stream.enqueue(new TextEncoder().encode(first)),
      pull(stream) {
        sent.chunks++
        stream.enqueue(chunk)
      },
    })
    return new Response(body, init)
  }
  return { sent, berth: createBerth({ baseUrl: 'http://berth.test/api', token: 'brt_x', fetch }) }
}

const json = { headers: { 'content-type': 'application/json' } }
const stream = { headers: { 'content-type': 'text/event-stream' } }

test.each([200, 400, 503])('a response of status %i without an end is left at 256 MiB', async (status) => {
  const { berth, sent } = endless('{', { ...json, status })
  await expect(berth.get('/account')).rejects.toThrow(
    new InvalidResponse('The server responded with more than 256 MiB.'),
  )
  expect(sent.requests).toBe(1)
  expect(sent.chunks).toBeLessThan(260)
})

test('so is the refusal of a stream', async () => {
  const { berth, sent } = endless('{', { ...json, status: 400 })
  await expect(berth.logs('dpl_1').next()).rejects.toBeInstanceOf(InvalidResponse)
  expect(sent.chunks).toBeLessThan(260)
})

test.each(['data: ', 'id: ', 'unsupported: ', ': '])(
  'a message of %j without an end is left at 1 MiB',
  async (first) => {
    const { berth, sent } = endless(first, stream)
    await expect(berth.logs('dpl_1').next()).rejects.toThrow(
      new InvalidResponse('The server sent a message of more than 1 MiB.'),
    )
    expect(sent.requests).toBe(1)
    expect(sent.chunks).toBeLessThan(10)
  },
)

test('so is one of lines without an end', async () => {
  const lines = 'data: x\n'.repeat(1 << 19)
  const { berth } = endless(lines, stream)
  await expect(berth.logs('dpl_1').next()).rejects.toBeInstanceOf(InvalidResponse)
})

test('comments between messages never add up to a message', async () => {
  const comments = ':keep-alive\nid: 1\n'.repeat(1 << 17)
  const { berth } = endless(`${comments}data: {"text":"x"}\n\n`, stream)
  expect(await berth.logs('dpl_1').next()).toEqual({ done: false, value: { text: 'x' } })
})

/** A client whose list is answered with these pages, and then with the last of them again and again. */
function paged(...pages: object[]) {
  let asked = 0
  const fetch = async () =>
    Response.json({ projects: [{ name: 'site' }], ...pages[Math.min(asked++, pages.length - 1)] })
  const berth = createBerth({ baseUrl: 'http://berth.test/api', token: 'brt_x', fetch })
  const read = async () => {
    let items = 0
    for await (const _ of berth.list('/projects')) if (++items > 10) break
    return items
  }
  return { read, asked: () => asked }
}

test.each([{}, { hasMore: true }, { hasMore: true, nextCursor: null }, { hasMore: false, nextCursor: 'a' }])(
  'a list ends with the page %j',
  async (last) => {
    const { read } = paged({ hasMore: true, nextCursor: 'a' }, last)
    expect(await read()).toBe(2)
  },
)

test.each([[['a']], [['a', 'b', 'a']]])('the cursors %j, again and again, are an error', async (cursors) => {
  const { read, asked } = paged(...cursors.map((nextCursor) => ({ hasMore: true, nextCursor })))
  await expect(read()).rejects.toThrow(new InvalidResponse('The server sent an endless list.'))
  expect(asked()).toBe(cursors.length === 1 ? 2 : 3)
})

test('empty pages with ever new cursors are an error, unless items come in between', async () => {
  const empty = (count: number, from: number) =>
    Array.from({ length: count }, (_, at) => ({ projects: [], hasMore: true, nextCursor: `c${from + at}` }))
  const some = { hasMore: true, nextCursor: 'some' }
  const endless = paged(...empty(999, 0), some, ...empty(1_001, 1_000))
  await expect(endless.read()).rejects.toThrow(new InvalidResponse('The server sent an endless list.'))
  expect(endless.asked()).toBe(2_000)
})
