import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { question, sendUdp } from './packets.ts'

async function bound(): Promise<Socket> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return socket
}

test('what another server still sends to the number that a socket has now is not its answer', async () => {
  const [server, other] = await Promise.all([bound(), bound()])
  server.on('message', (_, { port }) => {
    other.send('late', port, '127.0.0.1', () => server.send('answer', port, '127.0.0.1'))
  })
  expect(String(await sendUdp(server.address().port, question('example.com', 'A')))).toBe('answer')
  for (const socket of [server, other]) socket.close()
})
