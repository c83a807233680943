// A TCP load balancer: each new connection goes to the next ready server.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Program } from './program.ts'

export type Balancer = { port: number; close(): Promise<void> }

export type Group = {
  /** Replaceable one by one. The balancer checks continuously whether each is ready. */
  programs: Program[]
  balance(port: keyof Program['ports']): Promise<Balancer>
  close(): Promise<void>
}

const askMs = 50

export function balanced(programs: Program[]): Group {
  const ready = new Set<number>()
  const balancers: Balancer[] = []
  let turn = 0
  let closed = false
  async function ask(index: number): Promise<void> {
    while (!closed) {
      const { ports, readiness } = programs[index]!
      const report = await readiness()
      if (report?.code === 200) ready.add(ports.METRICS_PORT)
      else ready.delete(ports.METRICS_PORT)
      await sleep(askMs)
    }
  }
  for (const index of programs.keys()) void ask(index)

  function next(): Program | undefined {
    const able = programs.filter(({ ports }) => ready.has(ports.METRICS_PORT))
    return able[turn++ % able.length]
  }

  return {
    programs,
    async balance(port) {
      const sockets = new Set<Socket>()
      const server = createServer({ allowHalfOpen: true }, (near) => {
        const target = next()
        if (!target) return void near.destroy()
        const far = connect({ port: target.ports[port], host: '127.0.0.1', allowHalfOpen: true })
        for (const socket of [near, far]) {
          sockets.add(socket)
          socket.on('close', () => sockets.delete(socket))
        }
        // Passes a reset on, so that the client sees what the server did.
        near.on('error', () => far.resetAndDestroy())
        far.on('error', () => near.resetAndDestroy())
        near.pipe(far).pipe(near)
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      const balancer = {
        port: (server.address() as AddressInfo).port,
        async close() {
          for (const socket of sockets) socket.destroy()
          server.close()
          await once(server, 'close')
        },
      }
      balancers.push(balancer)
      return balancer
    },
    async close() {
      closed = true
      for (const { close } of balancers) await close()
    },
  }
}
