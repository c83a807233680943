// Opens connections to a sandbox's loopback from this process, so that no forwarder copies their bytes.
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { type OnReadOpts, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { getSystemErrorName } from 'node:util'
import { type Koffi, loadKoffi } from '../../platform/koffi.ts'
import { SandboxError } from '../processes/command.ts'

/**
 * A socket belongs to the network namespace its thread was in at its creation. So this thread enters the sandbox's
 * namespace, creates a socket and returns, without running anything in between. A process of the sandbox must not create
 * the socket for us: it could keep a copy and make our reads and writes block.
 */
export type Loopback = {
  /** The loopback of the sandbox whose first process is `init`, a child of `parent`; null if that has exited. */
  open(init: number, parent: number): SandboxLoopback | null
}

export type SandboxLoopback = {
  /** Tries 127.0.0.1 and ::1, because servers listen on either. */
  connect(port: number, options?: { onread?: OnReadOpts }): Promise<Socket>
  close(): void
}

// Linux constants and struct layouts for 64-bit little-endian processors.
const NEW_NETWORK = 0x4000_0000
const NON_BLOCKING_STREAM = 1 | 0o4000 | 0o2000000
const [AF_INET, AF_INET6] = [2, 10]
const [EISCONN, EALREADY, EINPROGRESS] = [106, 114, 115]
const ECONNREFUSED = 111
// The last one comes after a second, when TCP retransmits its first packet.
const MOST_CALLS = 12
// Besides refusals: no IPv6, or an interface that isn't up yet because the sandbox is just starting.
const NOTHING_LISTENS = new Set(['ECONNREFUSED', 'EAFNOSUPPORT', 'EADDRNOTAVAIL', 'ENETUNREACH', 'EHOSTUNREACH'])

function ipv4Loopback(port: number): Buffer {
  const address = Buffer.alloc(16)
  address.writeUInt16LE(AF_INET, 0)
  address.writeUInt16BE(port, 2)
  address.writeUInt32BE(0x7f00_0001, 4)
  return address
}

function ipv6Loopback(port: number): Buffer {
  const address = Buffer.alloc(28)
  address.writeUInt16LE(AF_INET6, 0)
  address.writeUInt16BE(port, 2)
  address[23] = 1
  return address
}

let opened: Promise<Loopback | null> | undefined

/** Shared by all sandboxes. Null without koffi, or without permission to change this thread's namespace. */
export function openLoopback(): Promise<Loopback | null> {
  opened ??= loadKoffi().then((koffi) => koffi && createLoopback(koffi))
  return opened
}

function createLoopback(koffi: Koffi): Loopback | null {
  const libc = koffi.load(null)
  const setns = libc.func('int setns(int, int)')
  const makeSocket = libc.func('int socket(int, int, int)')
  const startConnect = libc.func('int connect(int, void *, int)')
  const own = openSync('/proc/thread-self/ns/net', 'r')
  if (setns(own, NEW_NETWORK) < 0) {
    closeSync(own)
    return null
  }

  function failure(errno: number, syscall: string): Error {
    const code = getSystemErrorName(-errno)
    return Object.assign(new Error(`${syscall} ${code}`), { code, errno: -errno, syscall })
  }

  function socketIn(namespace: number, family: number): number {
    if (setns(namespace, NEW_NETWORK) < 0) throw failure(koffi.errno(), 'setns')
    const descriptor = makeSocket(family, NON_BLOCKING_STREAM, 0)
    const errno = koffi.errno()
    // Otherwise all further connections of this process would be opened in the sandbox.
    if (setns(own, NEW_NETWORK) < 0) process.abort()
    if (descriptor < 0) throw failure(errno, 'socket')
    return descriptor
  }

  /**
   * On loopback, connect usually has an outcome when it returns, which a second call reports. A busy machine may take a
   * moment longer.
   */
  async function connectIn(namespace: number, address: Buffer, options?: { onread?: OnReadOpts }): Promise<Socket> {
    const descriptor = socketIn(namespace, address.readUInt16LE(0))
    try {
      let errno = 0
      for (let call = 1; call <= MOST_CALLS; call++) {
        errno = startConnect(descriptor, address, address.length) < 0 ? koffi.errno() : 0
        if (errno !== EINPROGRESS && errno !== EALREADY) break
        if (call > 1) await delay(2 ** (call - 2))
      }
      // Still in progress if the server's queue is full. Writes are sent once it is connected.
      if (![0, EALREADY, EINPROGRESS, EISCONN].includes(errno)) throw failure(errno, 'connect')
      const socket = new Socket({ fd: descriptor, readable: true, writable: true, ...options })
      socket.setNoDelay(true)
      return socket
    } catch (error) {
      closeSync(descriptor)
      throw error
    }
  }

  return {
    open(init, parent) {
      const namespace = openNamespaceOf(init, parent)
      if (namespace === null) return null
      if (fstatSync(namespace).ino === fstatSync(own).ino) {
        closeSync(namespace)
        throw new SandboxError('The sandbox has no network namespace of its own.')
      }
      let open = true
      let last: { port: number; address: Buffer } | null = null
      return {
        async connect(port, options) {
          const known = last?.port === port ? [last.address] : []
          for (const address of [...known, ipv4Loopback(port), ipv6Loopback(port)]) {
            if (!open) break
            try {
              const socket = await connectIn(namespace, address, options)
              last = { port, address }
              return socket
            } catch (error) {
              if (!NOTHING_LISTENS.has((error as NodeJS.ErrnoException).code!)) throw error
            }
          }
          throw failure(ECONNREFUSED, 'connect')
        },
        close() {
          if (open) closeSync(namespace)
          open = false
        },
      }
    },
  }
}

/** Checking the parent rules out that the pid was reused. */
function openNamespaceOf(init: number, parent: number): number | null {
  let namespace: number
  try {
    namespace = openSync(`/proc/${init}/ns/net`, 'r')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return null
    throw new SandboxError(`The network of the sandbox cannot be entered: ${message}`)
  }
  if (parentOf(init) === parent) return namespace
  closeSync(namespace)
  return null
}

function parentOf(pid: number): number | null {
  try {
    return Number(/.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1])
  } catch {
    return null
  }
}
