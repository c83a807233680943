// Older versions of the API: answers name them and have their form, and ETags go on working in each.
import { readFile } from 'node:fs/promises'
import type { InjectOptions } from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiVersion, knownVersions } from '../../../src/api/http/responses/versions.ts'
import { createZoneKey } from '../../../src/services/dns/dnssec/zone-keys.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

const [older, current] = ['2026-11-14', '2026-11-19']

let api: TestApi
const path = '/api/dns/versions.example.com/dnssec'
beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('site')
  await api.call('POST', '/domains', { body: { project: 'site', name: 'versions.example.com' } })
  const { id } = await api.db.domain.findFirstOrThrow({ where: { name: 'versions.example.com' } })
  const use = { published: true, signing: true, announced: true }
  await api.db.zoneKey.create({ data: createZoneKey(api.deps.vault, id, use) })
  await api.db.domain.update({ where: { id }, data: { dnssecState: 'active', verified: true, dnssec: true } })
})
afterAll(() => api.stop())

/** Not by `api.call`, which holds every answer against the document of the current version. */
async function ask(version: string | null, headers: Record<string, string> = {}, options: InjectOptions = {}) {
  const authorization = `Bearer ${api.token}`
  const versioned = { authorization, ...headers, ...(version && { 'api-version': version }) }
  const answer = await api.app.inject({ method: 'GET', url: path, ...options, headers: versioned })
  const etag = String(answer.headers.etag)
  return { status: answer.statusCode, headers: answer.headers, etag, text: answer.body }
}
const statesOf = ({ text }: { text: string }) => {
  const { state, keys } = JSON.parse(text) as { state: string; keys: { state: string }[] }
  return [state, ...keys.map((key) => key.state)]
}

test('the guide tells what each version changed, newest first', async () => {
  expect([knownVersions, apiVersion]).toEqual([[current, older], current])
  const guide = await readFile('docs/guides/versions.md', 'utf8')
  expect([...guide.matchAll(/^\| (\d{4}-\d{2}-\d{2}) \|/gm)].map(([, version]) => version)).toEqual(knownVersions)
})

test('every answer names the version that was asked for, refusals and malformed addresses too', async () => {
  for (const [version, named] of [
    [null, current],
    [current, current],
    [older, older],
    ['2020-01-01', current],
  ] as const) {
    for (const url of ['/api/projects', '/api/projects/none', '/api/nothing', '/api/projects/%zz', '/healthz']) {
      const { headers } = await ask(version, {}, { url })
      expect([version, url, headers['api-version']]).toEqual([version, url, named])
    }
    const { headers } = await ask(version, { authorization: 'Bearer none' })
    expect(headers['api-version']).toBe(named)
  }
})

test('states of DNSSEC are in upper case, and in lower case in the version before', async () => {
  const [now, before] = [await ask(null), await ask(older)]
  expect(statesOf(now)).toEqual(['ACTIVE', 'ANNOUNCED'])
  expect(statesOf(before)).toEqual(['active', 'announced'])
  // Nothing else is different, not even the order of the fields.
  expect(before.text).toBe(now.text.replace('"ACTIVE"', '"active"').replace('"ANNOUNCED"', '"announced"'))
  for (const { headers } of [now, before]) expect(headers.vary).toContain('Api-Version')
  expect((await ask(older, {}, { url: '/api/projects' })).headers.vary ?? '').not.toContain('Api-Version')

  const head = await ask(older, {}, { method: 'HEAD' })
  expect([head.text, head.etag, head.headers['content-length']]).toEqual(['', before.etag, String(before.text.length)])
  const change: InjectOptions = { method: 'PUT', payload: { enabled: true } }
  expect(statesOf(await ask(current, {}, change))).toEqual(['ACTIVE', 'ANNOUNCED'])
  expect(statesOf(await ask(older, {}, change))).toEqual(['active', 'announced'])
})

test('a copy is current in the version that it was read in alone, and a change may be based on either', async () => {
  // Long enough to be compressed.
  const keys = ['G', 'H', 'I'].map((one) => `257 3 13 ${one}${'A'.repeat(85)}==`)
  const url = `${path}/foreign-keys`
  expect((await ask(null, {}, { method: 'PUT', url, payload: { keys } })).status).toBe(200)
  for (const encoding of [undefined, 'br']) {
    const read = (version: string, etag: string) =>
      ask(version, { ...(encoding && { 'accept-encoding': encoding }), ...(etag && { 'if-none-match': etag }) })
    const [now, before] = [await read(current, ''), await read(older, '')]
    for (const { headers } of [now, before]) expect(headers['content-encoding']).toBe(encoding)
    for (const [version, etag, status] of [
      [current, now.etag, 304],
      [older, before.etag, 304],
      [older, `W/${before.etag}`, 304],
      [current, before.etag, 200],
      [older, now.etag, 200],
    ] as const) {
      const answer = await read(version, etag)
      expect([encoding, version, etag, answer.status]).toEqual([encoding, version, etag, status])
      expect(answer.headers.vary).toContain('Api-Version')
    }
    expect((await read(older, before.etag)).etag).toBe(before.etag.replace('.br', ''))
    for (const version of [current, older]) {
      for (const etag of [now.etag, before.etag]) {
        const change: InjectOptions = { method: 'PUT', payload: { enabled: true } }
        expect((await ask(version, { 'if-match': etag }, change)).status).toBe(200)
        expect((await ask(version, { 'if-match': etag.replace('"', '"x') }, change)).status).toBe(412)
      }
    }
  }
})

test('an answer that is kept for an Idempotency-Key comes in the version of whoever repeats the request', async () => {
  const rollOver = (version: string) =>
    ask(version, { 'idempotency-key': 'roll' }, { method: 'POST', url: `${path}/rollover` })
  const [first, repeated, again] = [await rollOver(older), await rollOver(current), await rollOver(older)]
  expect(statesOf(first)).toEqual(['active', 'announced', 'published'])
  expect(statesOf(repeated)).toEqual(['ACTIVE', 'ANNOUNCED', 'PUBLISHED'])
  expect([first.status, again.text]).toEqual([202, first.text])
  expect([repeated, again].map(({ headers }) => headers['idempotency-replayed'])).toEqual(['true', 'true'])
})

test('events have one form, whatever version reads them', async () => {
  for (const version of [current, older]) {
    const { text, headers } = await ask(version, {}, { url: '/api/events?type=dns.dnssec.*' })
    const { events } = JSON.parse(text) as { events: { data: { state: string } }[] }
    expect(events.length).toBeGreaterThan(0)
    expect(events.map(({ data }) => data.state.toUpperCase())).toEqual(events.map(({ data }) => data.state))
    expect(headers['api-version']).toBe(version)
  }
})
