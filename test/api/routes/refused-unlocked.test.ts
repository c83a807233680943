// What is refused anyway waits for nobody: a busy account sheds changes, never refusals.
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { sharedApi } from '../../helpers/api.ts'

const api = await sharedApi()
afterAll(() => api.stop())

test('changes of tokens, members and invitations that are refused do not wait for the account', async () => {
  const token = (await api.call('POST', '/tokens', { body: { name: 'one', scopes: ['projects:read'] } })).body
  const narrow = (await api.call('POST', '/tokens', { body: { name: 'two', scopes: ['tokens:write'] } })).body.secret
  const other = new pg.Client(api.databaseUrl)
  await other.connect()
  await other.query('BEGIN')
  await other.query('SELECT id FROM account WHERE id = $1 FOR NO KEY UPDATE', [api.accountId])
  const widened = { scopes: ['dns:write'] }
  const refused = await Promise.all([
    api.call('POST', '/tokens', { body: { name: 7, scopes: ['projects:read'] } }),
    api.call('PATCH', `/tokens/${token.id}`, { body: { name: 7, ...widened } }),
    api.call('PATCH', `/tokens/${token.id}`, { body: widened }),
    api.call('PATCH', '/tokens/tok_none', { body: { name: 'x' } }),
    api.call('POST', '/tokens', { body: { name: 'one', projects: ['none'] } }),
    api.call('POST', '/tokens', { body: { name: 'one', scopes: ['projects:read'] }, token: narrow }),
    api.call('DELETE', '/tokens/tok_none'),
    api.call('DELETE', `/tokens/${token.id}`, { token: narrow }),
    api.call('DELETE', `/tokens/${token.id}`, { headers: { 'if-match': '"other"' } }),
    api.call('POST', '/tokens/tok_none/rotate', { body: {} }),
    api.call('POST', `/tokens/${token.id}/rotate`, { token: narrow, body: { revokeChildren: true } }),
    api.call('POST', '/members/invitations', { body: { email: 'none', role: 'owner' } }),
    api.call('DELETE', '/members/invitations/inv_none'),
    api.call('PATCH', '/members/mem_none', { body: { role: 'owner' } }),
    api.call('DELETE', '/members/mem_none'),
  ])
  await other.query('ROLLBACK')
  await other.end()
  expect(refused.map(({ status }) => status)).toEqual([
    ...[422, 422, 422, 404],
    ...[422, 403, 404, 403, 412, 404, 403],
    ...[422, 404, 404, 404],
  ])
})
