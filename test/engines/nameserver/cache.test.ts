// The cache of encoded answers: what it finds, and how much room it takes.
import { afterEach, describe, expect, test, vi } from 'vitest'
import { decodeQuery, emptyQuery } from '../../../src/dns/packet/query.ts'
import { type AnswerSource, createAnswerCache } from '../../../src/engines/nameserver/answer/cache.ts'

afterEach(() => vi.restoreAllMocks())

function question(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from(String.fromCharCode(label.length) + label, 'latin1'))
  const header = Buffer.from([0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
  return Buffer.concat([header, ...labels, Buffer.from([0, 0, 1, 0, 1])])
}

function asked(name: string) {
  const message = question(name)
  const query = emptyQuery()
  expect(decodeQuery(message, query)).toBe(true)
  return { message, query }
}

/** Stores an answer of some length, all of whose octets behind the question are `fill`. */
function store(
  cache: ReturnType<typeof createAnswerCache>,
  name: string,
  source: AnswerSource,
  fill: number,
  size = 60,
) {
  const { message, query } = asked(name)
  const octets = Buffer.concat([message, Buffer.alloc(size, fill)])
  const answer = { octets, start: 0, end: octets.length, below: null, truncated: false, pointers: [] }
  cache.set(query.hash, { ...answer, source, rcode: 0, tuple: 1, dnssec: 'any', gaps: null })
}

function find(cache: ReturnType<typeof createAnswerCache>, name: string): Buffer | null {
  const { message, query } = asked(name)
  const found = cache.get(message, query)
  return found?.octets.subarray(found.start + query.questionEnd, found.end) ?? null
}

describe('the cache of answers', () => {
  test('takes no more room for an answer that changes a hundred thousand times', () => {
    const cache = createAnswerCache()
    const taken = vi.spyOn(Buffer, 'allocUnsafeSlow')
    for (let i = 0; i < 100_000; i++) {
      const source = { live: true, tally: null }
      store(cache, 'www.example.com', source, i & 0xff, 60 + (i % 3))
      source.live = false
    }
    expect(taken).toHaveBeenCalledTimes(1)
  })

  test('keeps others as they were when one grows beyond its room and when all of it is used up', () => {
    const cache = createAnswerCache(18, 2)
    const source = { live: true, tally: null }
    for (let size = 10; size <= 3_000; size += 10) {
      store(cache, 'kept.example.com', source, 7)
      store(cache, 'grows.example.com', source, 9, size)
      expect(find(cache, 'grows.example.com')).toEqual(Buffer.alloc(size, 9))
      expect(find(cache, 'kept.example.com')).toEqual(Buffer.alloc(60, 7))
    }
    for (let i = 0; i < 2_000; i++) store(cache, `n${i}.example.com`, source, i & 0xff, 1_500)
    for (let i = 0; i < 2_000; i++) {
      const found = find(cache, `n${i}.example.com`)
      if (found) expect(found).toEqual(Buffer.alloc(1_500, i & 0xff))
    }
    expect(find(cache, 'n1999.example.com')).not.toBeNull()
  })

  test('finds nothing of a source that has ended', () => {
    const cache = createAnswerCache()
    const source = { live: true, tally: null }
    store(cache, 'www.example.com', source, 1)
    source.live = false
    expect(find(cache, 'www.example.com')).toBeNull()
  })
})
