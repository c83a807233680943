// Caddy with one certificate and one directory, started from a temporary directory and ended by its id.
import { spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'node:tls'
import { freePort } from '../children.ts'
import { findProgram } from '../edge/peers.ts'

export type HttpsPeer = { name: string; port: number; stop(): Promise<void> }

/** Null where it is not installed. */
export async function startCaddy(
  directory: string,
  served: string,
  host: string,
  { chain, key }: { chain: string; key: string },
): Promise<HttpsPeer | null> {
  const program = findProgram('caddy')
  if (program === null) return null
  const home = join(directory, 'caddy')
  await mkdir(home)
  const port = await freePort()
  await writeFile(join(home, 'chain.pem'), chain)
  await writeFile(join(home, 'key.pem'), key)
  const config = `{
  admin off
  auto_https off
}
https://${host}:${port} {
  bind 127.0.0.1
  tls chain.pem key.pem
  root * ${served}
  file_server
}
`
  await writeFile(join(home, 'Caddyfile'), config)
  const log = openSync(join(home, 'output.log'), 'a')
  // Whatever it keeps for later it keeps here.
  const env = { PATH: process.env.PATH, HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home }
  const args = ['run', '--config', 'Caddyfile', '--adapter', 'caddyfile']
  const child = spawn(program, args, { cwd: home, env, stdio: ['ignore', log, log] })
  let running = true
  const gone = new Promise<void>((resolve) => {
    const over = () => {
      running = false
      resolve()
    }
    child.once('exit', over).once('error', over)
  })
  const stop = async () => {
    if (running) child.kill('SIGTERM')
    await gone
  }
  for (let tries = 0; tries < 100 && running; tries++) {
    if (await answers(port, host)) return { name: 'Caddy', port, stop }
    await sleep(50)
  }
  await stop()
  throw new Error(`Caddy did not start; run it by hand: ${program} ${args.join(' ')} in ${home}`)
}

/** Whether a handshake for the host succeeds. */
export function answers(port: number, servername: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false })
    socket.once('secureConnect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
