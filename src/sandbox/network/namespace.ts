// A network namespace whose only route is slirp4netns, with firewall rules in force before anything runs in it.
import type { ChildProcess } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { clearTimeout, setTimeout } from 'node:timers'
import { onAbort } from '../../platform/abort.ts'
import { SandboxError } from '../processes/command.ts'
import { type Stdio, spawnClean } from '../processes/descriptors.ts'
import { firewallRules } from './firewall.ts'

/** Paths of the programs. */
export type NamespaceTools = { slirp4netns: string; nft: string }

export type NamespaceOptions = {
  tools: NamespaceTools
  /** User of slirp4netns and owner of the namespace if Berth is root; null: Berth's own user. */
  user: { uid: number; gid: number } | null
  /** The platform's own addresses. */
  own: string[]
  /** Control groups for slirp4netns. */
  entrances: Promise<string[]>
  inherited: number[]
  signal: AbortSignal
}

export type Namespace = {
  /** Command prefix that starts a program in the namespace. */
  enter: string[]
  /** Settles when the rules are in force and the route is up. Nothing untrusted may run before. */
  connected: Promise<void>
  /** Resolves if the route fails before `close`. */
  lost: Promise<void>
  close(): Promise<void>
}

// This normally takes 20 ms, but seconds on an overloaded machine. The run has its own deadline too.
const TIMEOUT_MS = 30_000
/** Limits slirp4netns's descriptors: each connection of a sandbox uses one, and a port of the host. */
const MAX_CONNECTIONS = 4096
const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/**
 * The namespace has its own user namespace, so that neither slirp4netns, which parses untrusted packets, nor nft is
 * root. Both exit when a pipe closes that only Berth holds, even if Berth is killed. The namespace can be entered
 * immediately, so that bubblewrap and the forwarder start while it is being connected.
 */
export async function openNamespace(options: NamespaceOptions): Promise<Namespace> {
  const { user, tools, inherited, signal } = options
  const drop = user === null ? [] : ['setpriv', '--reuid', `${user.uid}`, '--regid', `${user.gid}`, '--clear-groups']
  const holder = follow('nft', spawnClean([...drop, ...holderOf(tools.nft)], HOLDER_STDIO, inherited))
  const children = [holder]
  const pid = holder.child.pid
  ;(holder.child.stdio[RULES_FD] as Writable | undefined)?.end(firewallRules(options.own))
  const { promise: lost, resolve: lose } = Promise.withResolvers<void>()
  let closed = false

  async function connect(): Promise<void> {
    const [entrances] = await Promise.all([options.entrances, said(holder, IN_FORCE_FD, signal)])
    if (closed) return
    const argv = slirpOf(tools.slirp4netns, pid!, drop, entrances)
    const slirp = follow('slirp4netns', spawnClean(argv, SLIRP_STDIO, inherited))
    children.push(slirp)
    void slirp.exited.then(() => closed || lose())
    await said(slirp, READY_FD, signal)
  }
  const connected = connect()
  connected.catch(() => {})
  const close = async () => {
    closed = true
    for (const { child } of children) child.kill('SIGKILL')
    await connected.catch(() => {})
    await Promise.all(children.map(({ exited }) => exited))
  }
  try {
    await said(holder, MADE_FD, signal)
  } catch (error) {
    await close()
    throw error
  }
  const enter =
    user === null
      ? ['nsenter', '--target', `${pid}`, '--user', '--net', '--preserve-credentials', '--']
      : ['nsenter', `--net=/proc/${pid}/ns/net`, '--']
  return { enter, connected, lost, close }
}

const MADE_FD = 1
const RULES_FD = 3
const IN_FORCE_FD = 4
const HOLDER_STDIO: Stdio = ['pipe', 'pipe', 'pipe', 'pipe', 'pipe']

/** Creates the namespace, signals when its rules are in force, and holds it until its input ends. */
function holderOf(nft: string): string[] {
  const lines = ['set -e', `echo >&${MADE_FD}`, `${quote(nft)} -f - <&${RULES_FD}`]
  // Lets the unprivileged forwarder bind port 53.
  lines.push('echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start')
  const script = [...lines, `echo >&${IN_FORCE_FD}`, 'read -r line || :'].join('\n')
  return ['unshare', '--user', '--map-root-user', '--net', '--', '/bin/sh', '-c', script]
}

const READY_FD = 3
const EXIT_FD = 4
const SLIRP_STDIO: Stdio = ['ignore', 'ignore', 'pipe', 'pipe', 'pipe']

function slirpOf(slirp4netns: string, pid: number, drop: string[], entrances: string[]): string[] {
  const argv = [
    ...[slirp4netns, '--configure', '--mtu=65520', '--disable-host-loopback', '--disable-dns'],
    ...['--enable-sandbox', '--enable-seccomp', `--ready-fd=${READY_FD}`, `--exit-fd=${EXIT_FD}`, `${pid}`, 'tap0'],
  ]
  const lines = ['set -e', `ulimit -n ${MAX_CONNECTIONS}`, ...entrances.map((file) => `echo 0 > ${quote(file)}`)]
  if (drop.length > 0) {
    // On many machines only root may open the device, so this creates a node that only this process sees.
    lines.push('mount -t tmpfs -o mode=0755,size=4k berth /dev/net', 'mknod -m 0666 /dev/net/tun c 10 200')
  }
  lines.push('exec "$@"')
  const shell = ['/bin/sh', '-c', lines.join('\n'), 'berth', ...drop, ...argv]
  return drop.length > 0 ? ['unshare', '--mount', '--propagation', 'private', '--', ...shell] : shell
}

type Child = { name: string; child: ChildProcess; exited: Promise<void>; errorOutput(): string }

function follow(name: string, child: ChildProcess): Child {
  let errorOutput = ''
  child.stderr!.on('data', (chunk: Buffer) => {
    errorOutput = (errorOutput + chunk.toString('latin1')).slice(-1000)
  })
  for (const pipe of child.stdio) pipe?.on('error', () => {})
  const exited = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
    child.once('error', (error) => {
      errorOutput ||= error.message
      resolve()
    })
  })
  return { name, child, exited, errorOutput: () => errorOutput.trim() }
}

/** Resolves when the process writes to the descriptor; rejects if it exits first or takes too long. */
async function said(
  { name, child, exited, errorOutput }: Child,
  descriptor: 1 | 3 | 4,
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const fail = (cause: string) => reject(new SandboxError(`The network could not be created: ${name}: ${cause}`))
  const timer = setTimeout(() => fail('no answer'), TIMEOUT_MS)
  const unlisten = onAbort(signal, () => fail('the run ended'))
  ;(child.stdio[descriptor] as Readable | undefined)?.once('data', () => resolve())
  void exited.then(() => fail(errorOutput() || `ended with ${child.exitCode}`))
  try {
    await promise
  } finally {
    clearTimeout(timer)
    unlisten()
  }
}
