// What lies around a sandbox in the tests of its network: an internet, names for it, and the machine itself.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Network, Sandbox } from '../../src/sandbox/sandbox.ts'
import { startUpstream, type Upstream } from './dns.ts'
import { type Outside, openOutside } from './outside.ts'
import { internet, openSandbox, run } from './sandboxes.ts'

export const PLATFORM = '203.0.113.250'

export type World = {
  outside: Outside
  upstream: Upstream
  sandbox: Sandbox
  /** A server on every address of this machine, and who got through to it. */
  machinePort: number
  reached: string[]
  close(): Promise<void>
}

export async function openWorld(): Promise<World> {
  const outside = await openOutside()
  let rebound = 0
  const upstream = await startUpstream((name) => {
    const names: Record<string, () => string[]> = {
      'web.example': () => [outside.address],
      'loopback.example': () => ['127.0.0.1'],
      'private.example': () => ['10.0.0.1'],
      'mixed.example': () => [outside.address, '10.0.0.1'],
      'machine.example': () => [outside.machine],
      'platform.example': () => [PLATFORM],
      'many.example': () => Array.from({ length: 60 }, (_, index) => `203.0.113.${index}`),
      'rebinding.example': () => [rebound++ === 0 ? outside.address : '127.0.0.1'],
    }
    return names[name]?.() ?? 3
  })
  const reached: string[] = []
  const machine = createServer((asked, response) => {
    reached.push(asked.url!)
    response.end(`machine ${asked.url}`)
  })
  machine.on('connection', (socket) => reached.push(`connection to ${socket.localAddress}`))
  machine.listen(0, '::')
  await once(machine, 'listening')
  const { port: machinePort } = machine.address() as AddressInfo
  const { sandbox } = await openSandbox('bubblewrap', { resolvers: [upstream.address], ownAddresses: [PLATFORM] })
  const close = async () => {
    machine.close()
    upstream.close()
    await outside.close()
  }
  return { outside, upstream, sandbox, machinePort, reached, close }
}

export const node = (program: string) => ['node', '-e', program]
/** Functions for programs in the sandbox: each resolves with the answer or the error's code. */
const TALK = `
  const said = (text) => ({ text })
  const tcp = (host, port, message = 'hello') => new Promise((resolve) => {
    const socket = require('net').connect({ host, port, autoSelectFamily: false })
    socket.setTimeout(15000, () => resolve(said('silence')))
    socket.on('error', (error) => resolve(said(error.code)))
    socket.on('connect', () => socket.write(message))
    socket.on('data', (data) => { resolve(said(String(data))); socket.destroy() })
    socket.on('close', () => resolve(said('closed')))
  })
  const udp = (host, port, waitMs = 15000) => new Promise((resolve) => {
    const socket = require('dgram').createSocket(host.includes(':') ? 'udp6' : 'udp4')
    const end = (text) => { resolve(said(text)); try { socket.close() } catch {} }
    setTimeout(end, waitMs, 'silence')
    socket.on('error', (error) => end(error.code))
    socket.on('message', (data) => end(String(data)))
    socket.connect(port, host, (error) => error ? end(error.code) : socket.send('hello', (error) => error && end(error.code)))
  })
  const tell = (promises) => Promise.all(promises).then((all) => { console.log(JSON.stringify(all)); process.exit() })
`
export type Told = { text: string }[]

/** The program is a list of such calls. */
export async function told(sandbox: Sandbox, program: string, network: Network | null = internet): Promise<Told> {
  const { stdout, stderr } = await run(sandbox, node(`${TALK}; tell([${program}])`), { network })
  return JSON.parse(stdout || JSON.stringify(stderr))
}
export const texts = (all: Told) => all.map(({ text }) => text)
