// The internet of the tests: a network namespace behind a pair of interfaces, with servers that echo.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { accessSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'vitest'
import { searchPath } from './sandboxes.ts'

const has = (program: string) =>
  [...searchPath.split(delimiter), '/usr/sbin'].some((directory) => {
    try {
      accessSync(join(directory, program))
      return true
    } catch {
      return false
    }
  })
const absent = ['bwrap', 'slirp4netns', 'nft', 'ip'].filter((program) => !has(program))
const reason =
  process.getuid?.() !== 0 ? 'only root can make the network of this test' : `${absent.join(', ')} not installed`
const available = process.getuid?.() === 0 && absent.length === 0
export const required = available || process.env.BERTH_REQUIRE_PEERS === '1'

/** Skipped with its reason where that network cannot be made, unless that is an error. */
export const networkTest = test.skipIf(!required)
if (!required) console.warn(`tests of sandboxes' networks are skipped: ${reason}`)

export type Outside = {
  /** Of the servers, and of this machine in the same network. */
  address: string
  machine: string
  echoPort: number
  webPort: number
  close(): Promise<void>
}

const SERVERS = `
  const [address, echoPort, webPort] = process.argv.slice(1)
  const net = require('net'), udp = require('dgram').createSocket('udp4')
  udp.on('message', (message, from) => udp.send('udp ' + message, from.port, from.address))
  udp.bind(echoPort, address)
  const tcp = net.createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (data) => socket.end('tcp ' + data))
  }).listen(echoPort, address)
  const web = require('http').createServer((request, response) => response.end('web ' + request.url))
  web.listen(webPort, address, () => console.log('ready'))`

/** Two of a network that no other run of these tests has on this machine. */
function freeAddresses(): [string, string] {
  const taken = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  for (;;) {
    const base = 4 * randomInt(64)
    const machine = `198.51.100.${base + 1}`
    if (!taken.some(({ address }) => address === machine)) return [machine, `198.51.100.${base + 2}`]
  }
}

export async function openOutside(): Promise<Outside> {
  const name = `berth-${process.pid}`
  const [near, far] = [`bn${process.pid}`, `bf${process.pid}`]
  const [machine, address] = freeAddresses()
  const ip = (...args: string[]) => execFileSync('ip', args, { stdio: 'pipe' })
  ip('netns', 'add', name)
  let servers: ChildProcess | undefined
  const close = async () => {
    if (servers) {
      servers.kill('SIGKILL')
      await once(servers, 'exit')
    }
    // The pair of interfaces goes with it.
    ip('netns', 'delete', name)
  }
  try {
    ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', name)
    ip('address', 'add', `${machine}/30`, 'dev', near)
    ip('link', 'set', near, 'up')
    ip('-n', name, 'address', 'add', `${address}/30`, 'dev', far)
    ip('-n', name, 'link', 'set', far, 'up')
    const [echoPort, webPort] = [7007, 8080]
    const argv = ['netns', 'exec', name, process.execPath, '-e', SERVERS, address, `${echoPort}`, `${webPort}`]
    servers = spawn('ip', argv, { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(servers.stdout!, 'data')
    return { address, machine, echoPort, webPort, close }
  } catch (error) {
    await close()
    throw error
  }
}
