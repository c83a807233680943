// Where the edge listens, and how it reaches the runners.
import { List, list, Port, type Refuse, Text, type Values } from './variables.ts'

export const edgeVariables = {
  EDGE_HTTP_PORT: Port(8080),
  EDGE_HTTPS_PORT: Port(8443),
  DEPLOYMENT_DOMAIN: Text('localhost'),
  EDGE_ADDRESSES: List('127.0.0.1'),
  RUNNER_LISTEN: Text('127.0.0.1:0'),
  RUNNER_ADDRESS: Text(),
}

export function edgeSettings(env: Values<typeof edgeVariables>, refuse: Refuse) {
  const [, host = '', port] = /^(\[[0-9a-f:.]+\]|[^\s:[\]]+):(\d{1,5})$/i.exec(env.RUNNER_LISTEN) ?? []
  if (host === '' || Number(port) > 65535) refuse(`RUNNER_LISTEN must be <address>:<port>, got ${env.RUNNER_LISTEN}.`)
  const runner = { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
  if (env.RUNNER_ADDRESS && !/^(\[[0-9a-f:.]+\]|[^\s:[\]]+)(:\d{1,5})?$/i.test(env.RUNNER_ADDRESS)) {
    refuse('RUNNER_ADDRESS must be <host>:<port>, or a host alone to use the port of RUNNER_LISTEN.')
  }
  if (/^(0\.0\.0\.0|::)$/.test(runner.host) && !env.RUNNER_ADDRESS) {
    refuse('RUNNER_ADDRESS must say where edges reach this machine, because RUNNER_LISTEN is every address of it.')
  }
  return {
    edge: {
      httpPort: env.EDGE_HTTP_PORT,
      httpsPort: env.EDGE_HTTPS_PORT,
      domain: env.DEPLOYMENT_DOMAIN,
      addresses: list(env.EDGE_ADDRESSES),
    },
    /** Where a runner listens for edges. They reach it at `address`; null: where it listens. */
    runner: { ...runner, address: env.RUNNER_ADDRESS || null },
  }
}
