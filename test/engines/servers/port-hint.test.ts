import { expect, test } from 'vitest'
import { nothingListens } from '../../../src/engines/servers/instance/health.ts'
import { withPortHint } from '../../../src/engines/servers/instance/instance.ts'

const reason = `The server was not healthy within 60 s: ${nothingListens}`

test.each([
  ['Server listening on port 4000', '4000'],
  ['> ready at http://localhost:8080/', '8080'],
  ['Listening on http://0.0.0.0:5000', '5000'],
  ['http://[::]:1337', '1337'],
  ['Port: 9000', '9000'],
])('a server that prints %j is told of its port', (line, port) => {
  expect(withPortHint(reason, ['starting', line])).toBe(
    `${reason}, it names port ${port} instead: it has to take that of PORT`,
  )
})

test.each(['I listen to nobody', 'port 3000', 'support 99 things', 'exported 12345'])(
  'one that prints %j is not',
  (line) => {
    expect(withPortHint(reason, [line])).toBe(reason)
  },
)

test('nor is one that failed for another reason', () => {
  expect(withPortHint('The server exited with 1', ['port 4000'])).toBe('The server exited with 1')
})
