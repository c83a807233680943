// A connection to PostgreSQL that ends after the commit has reached it, and before anybody hears of that.
import { connect, createServer, type Server } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { createDatabase } from '../../helpers/database.ts'

let api: TestApi
let link: Server
beforeAll(async () => {
  const database = await createDatabase()
  const url = new URL(database.url)
  const target = Number(url.port)
  link = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    // The commit is what follows the event, which is written last.
    let written = false
    let committing = false
    for (const socket of [near, far]) socket.on('error', () => {})
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
    near.on('data', (chunk) => {
      committing ||= written
      written ||= chunk.includes('project.updated')
      far.write(chunk)
    })
    far.on('data', (chunk) => (committing ? near.destroy() : near.write(chunk)))
  })
  await new Promise<void>((resolve) => void link.listen(0, '127.0.0.1', resolve))
  url.port = String((link.address() as { port: number }).port)
  api = await startApi({ DATABASE_URL: url.href })
})
afterAll(async () => {
  await api.stop()
  link.close()
})

test('a change whose commit was not heard of is not said to be undone, since it may be done', async () => {
  await api.newProject('site')
  const answer = await api.call('PATCH', '/projects/site', { body: { framework: 'vue' } })
  expect(answer).toMatchObject({ status: 503, body: { code: 'database_unavailable' } })
  expect((await api.call('GET', '/projects/site')).body.framework).toBe('vue')
  expect(answer.body.detail).toContain('may have been stored')
  expect(answer.body.detail).not.toContain('Nothing')
})
