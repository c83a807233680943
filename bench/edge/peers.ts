// Caddy and nginx with minimal configurations, in temporary directories.
import { spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../children.ts'
import { findProgram } from '../programs.ts'

export type Peer = { name: string; port: number; pid: number; stop(): Promise<void> }
export type Secure = { host: string; chain: string; key: string }

/** Null if it isn't installed. `served` must be readable by everyone. */
export function startCaddy(directory: string, served: string): Promise<Peer | null> {
  return startCaddyWith(directory, [`root * ${served}`, 'file_server'])
}

/** With a host and a certificate, it serves only HTTPS. */
export async function startCaddyWith(directory: string, directives: string[], secure?: Secure): Promise<Peer | null> {
  const program = findProgram('caddy')
  if (program === null) return null
  const home = join(directory, 'caddy')
  await mkdir(home)
  const port = await freePort()
  if (secure) {
    await writeFile(join(home, 'chain.pem'), secure.chain)
    await writeFile(join(home, 'key.pem'), secure.key)
  }
  const config = `{
  admin off
  auto_https off
}
${secure ? `https://${secure.host}` : 'http://'}:${port} {
  bind 127.0.0.1
  ${[...(secure ? ['tls chain.pem key.pem'] : []), ...directives].join('\n  ')}
}
`
  await writeFile(join(home, 'Caddyfile'), config)
  // Keeps its data here.
  const env = { PATH: process.env.PATH, HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home }
  return start('Caddy', program, ['run', '--config', 'Caddyfile', '--adapter', 'caddyfile'], home, env, port, 'SIGTERM')
}

export async function startNginx(directory: string, served: string, workers = 2): Promise<Peer | null> {
  const program = findProgram('nginx')
  if (program === null) return null
  const home = join(directory, 'nginx')
  await mkdir(home)
  const port = await freePort()
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${home}/${name};`,
  )
  const config = `daemon off;
worker_processes ${workers};
pid ${home}/nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  default_type application/json;
${places.join('\n')}
  server {
    listen 127.0.0.1:${port};
    root ${served};
  }
}
`
  await writeFile(join(home, 'nginx.conf'), config)
  const args = ['-p', home, '-c', join(home, 'nginx.conf'), '-e', 'stderr']
  return start('nginx', program, args, home, { PATH: process.env.PATH }, port, 'SIGQUIT')
}

async function start(
  name: string,
  program: string,
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  port: number,
  end: NodeJS.Signals,
): Promise<Peer> {
  const log = openSync(join(cwd, 'output.log'), 'a')
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', log, log] })
  let running = true
  const exited = new Promise<void>((resolve) => {
    const over = () => {
      running = false
      resolve()
    }
    child.once('exit', over).once('error', over)
  })
  const stop = async () => {
    if (running) child.kill(end)
    await exited
  }
  for (let tries = 0; tries < 600 && running; tries++) {
    if (await listens(port)) return { name, port, pid: child.pid!, stop }
    await sleep(50)
  }
  await stop()
  throw new Error(`${name} did not start; run it by hand: ${program} ${args.join(' ')}`)
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}
