// Machines as network namespaces behind one bridge: each has an address, and a cable that can be pulled.
import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

export type Machine = {
  name: string
  address: string
  /** Without mounts of its own: sandboxes need the cgroups of this system. */
  command(...command: string[]): [program: string, args: string[]]
  /** From here on nothing reaches it, and nobody is told. */
  pull(): Promise<void>
  plug(): Promise<void>
}

export type Network = {
  /** The address of this process among the machines. */
  outside: string
  machine(name: string): Promise<Machine>
  close(): Promise<void>
}

/** Whether namespaces and bridges can be made here: root on Linux, with iproute2 and util-linux. */
export function canOpenNetwork(): boolean {
  const name = `berth-try-${process.pid}`
  try {
    execFileSync('sh', [
      '-c',
      `command -v nsenter && ip link add ${name.slice(-14)} type bridge && ip link del ${name.slice(-14)} && ip netns add ${name} && ip netns del ${name}`,
    ])
    return true
  } catch {
    return false
  }
}

export async function openNetwork(): Promise<Network> {
  // Names of interfaces have at most 15 characters.
  const mark = `bc${process.pid.toString(36)}`
  const prefix = `10.${200 + (process.pid % 50)}.${(process.pid >> 6) % 256}`
  const closers: (() => Promise<unknown>)[] = []
  const ip = (...args: string[]) => run('ip', args)
  await ip('link', 'add', mark, 'type', 'bridge')
  closers.push(() => ip('link', 'del', mark))
  let count = 0
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer().catch(() => {})
  }
  try {
    await ip('address', 'add', `${prefix}.1/24`, 'dev', mark)
    await ip('link', 'set', mark, 'up')
  } catch (error) {
    await close()
    throw error
  }
  return {
    outside: `${prefix}.1`,
    close,
    async machine(name) {
      const at = ++count
      const [namespace, cable, address] = [`${mark}-${name}`, `${mark}v${at}`, `${prefix}.${10 + at}`]
      await ip('netns', 'add', namespace)
      closers.push(() => ip('netns', 'del', namespace))
      await ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace)
      await ip('-n', namespace, 'address', 'add', `${address}/24`, 'dev', 'eth0')
      for (const device of ['lo', 'eth0']) await ip('-n', namespace, 'link', 'set', device, 'up')
      await ip('-n', namespace, 'route', 'add', 'default', 'via', `${prefix}.1`)
      await ip('link', 'set', cable, 'master', mark, 'up')
      return {
        name,
        address,
        command: (...command) => ['nsenter', [`--net=/run/netns/${namespace}`, ...command]],
        pull: async () => void (await ip('link', 'set', cable, 'down')),
        plug: async () => void (await ip('link', 'set', cable, 'up')),
      }
    },
  }
}
