// The program inside a sandbox that connects its loopback to host sockets, and runs the command as its child.

/** The proxy's port in the sandbox. The network is private, so only the command could conflict with it. */
export const PROXY_PORT = 43128

export type ForwarderPlan = {
  argv: string[]
  environment: Record<string, string>
  /** Path of the proxy's socket, or null. */
  egress: string | null
  proxyPort: number
  /** Path of the resolver's socket, which uses DNS's TCP format, or null. */
  resolver: string | null
  /** Port where the command will listen, or null. Connections are accepted on descriptor LISTENER_FD. */
  listenPort: number | null
}

export const PLAN_FD = 5
export const LISTENER_FD = 6

/**
 * Plain JavaScript, because it isn't part of the compiled program. The plan comes through a descriptor, because the
 * command's NODE_OPTIONS in the environment would apply to this program too. It isn't trusted, because the command runs
 * as the same user.
 */
export const FORWARDER = `
const net = require('node:net')
const dgram = require('node:dgram')
const fs = require('node:fs')
const { spawn } = require('node:child_process')
const { signals } = require('node:os').constants

const text = fs.readFileSync(${PLAN_FD}, 'utf8')
fs.closeSync(${PLAN_FD})
// The host could not prepare what the plan needs, and tells why itself.
if (text === '') process.exit(1)
const plan = JSON.parse(text)

const both = [{ address: '127.0.0.1', family: 4 }, { address: '::1', family: 6 }]
const lookup = (_host, _options, done) => done(null, both)

function forward(where, target) {
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (from) => {
    const to = net.connect({ allowHalfOpen: true, noDelay: true, ...target })
    from.pipe(to).pipe(from)
    for (const [one, other] of [[from, to], [to, from]]) {
      one.on('error', () => other.destroy())
      one.on('close', () => one.readableEnded || other.destroy())
    }
  })
  return new Promise((resolve) => server.listen(where, resolve))
}

// What a client takes by UDP; it says so in its OPT record, the first after the question.
function sizeFor(query) {
  let at = 12
  while (query[at]) at += query[at] + 1
  at += 5
  if (query.length < at + 5 || query[at] !== 0 || query.readUInt16BE(at + 1) !== 41) return 512
  return Math.min(1232, Math.max(512, query.readUInt16BE(at + 3)))
}

function fit(answer, query) {
  if (answer.length <= sizeFor(query)) return answer
  let at = 12
  while (answer[at]) at += answer[at] + 1
  const head = Buffer.from(answer.subarray(0, at + 5))
  head[2] |= 2
  head.fill(0, 6, 12)
  return head
}

let questions = 0
function exchange(udp, query, { address, port }) {
  if (questions >= 64) return
  questions++
  const to = net.connect({ path: plan.resolver })
  let received = Buffer.alloc(0)
  to.setTimeout(10000, () => to.destroy())
  to.on('error', () => {})
  to.on('close', () => questions--)
  to.on('data', (chunk) => {
    received = Buffer.concat([received, chunk])
    if (received.length < 2 || received.length < 2 + received.readUInt16BE()) return
    to.destroy()
    udp.send(fit(received.subarray(2, 2 + received.readUInt16BE()), query), port, address)
  })
  const length = Buffer.alloc(2)
  length.writeUInt16BE(query.length)
  to.write(Buffer.concat([length, query]))
}

async function resolve() {
  const where = { address: '127.0.0.1', port: 53 }
  const udp = dgram.createSocket('udp4', (query, from) => exchange(udp, query, from))
  await Promise.all([
    forward({ host: where.address, port: where.port }, { path: plan.resolver }),
    new Promise((resolve) => udp.bind(where, resolve)),
  ])
  // A client that does not wait for its answer.
  udp.on('error', () => {})
}

async function main() {
  if (plan.resolver) await resolve()
  if (plan.egress) await forward({ host: '127.0.0.1', port: plan.proxyPort }, { path: plan.egress })
  if (plan.listenPort) {
    await forward({ fd: ${LISTENER_FD} }, { host: 'localhost', port: plan.listenPort, lookup, autoSelectFamily: true })
  }
  // The command gets these signals itself, as a member of the same group, and may still need its connections.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {})
  const [program, ...rest] = plan.argv
  const env = { ...plan.environment, PWD: process.cwd() }
  const child = spawn(program, rest, { stdio: 'inherit', env })
  child.on('error', (error) => {
    console.error(error.message)
    process.exit(error.code === 'ENOENT' ? 127 : 126)
  })
  child.on('exit', (code, signal) => process.exit(signal ? 128 + signals[signal] : code))
}
main()
`
