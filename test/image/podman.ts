// Runs services of compose.yaml by podman: each setting becomes the flag that means the same.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Compose, environmentOf, root, type Service, type Values } from './compose.ts'

const run = promisify(execFile)

export type Result = { code: number; output: string }

/** runc, because Debian's crun refuses machines with both versions of control groups. */
export async function podman(...args: string[]): Promise<string> {
  const { stdout } = await run('podman', ['--runtime', 'runc', ...args], { maxBuffer: 64 << 20 })
  return stdout.trim()
}

/** Never rejects: for what is expected to fail. */
export async function tryPodman(...args: string[]): Promise<Result> {
  return podman(...args).then(
    (output) => ({ code: 0, output }),
    (error: { code?: number; stdout?: string; stderr?: string }) => ({
      code: Number(error.code ?? 1),
      output: `${error.stdout ?? ''}${error.stderr ?? ''}`.trim(),
    }),
  )
}

/** What a container wrote, to both streams. */
export async function logsOf(machine: Machine, name: string): Promise<string> {
  const { stdout, stderr } = await run('podman', ['logs', containerOf(machine, name)], { maxBuffer: 64 << 20 })
  return `${stdout}${stderr}`.trim()
}

export type Machine = {
  /** Prefix of every container, volume and network, so that nothing else is touched. */
  name: string
  /** The address of this machine where ports are published. */
  address: string
  /** Names that are outside of compose here, such as that of the database. */
  hosts: Record<string, string>
  /** A device as udev makes it, in place of the machine's own. */
  devices: Record<string, string>
  values: Values
  compose: Compose
}

/** Docker's words for options that podman calls otherwise. */
function securityOption(option: string): string {
  if (option === 'systempaths=unconfined') return 'unmask=ALL'
  if (option.startsWith('seccomp=')) return `seccomp=${join(root, option.slice('seccomp='.length))}`
  return option.replace(/^no-new-privileges:true$/, 'no-new-privileges')
}

function volumeFlag(machine: Machine, volume: string): string {
  const [source = '', ...rest] = volume.split(':')
  const from = source.startsWith('.') ? join(root, source) : `${machine.name}-${source}`
  return [from, ...rest].join(':')
}

const each = (flag: string, values: readonly string[] = []) => values.flatMap((value) => [flag, value])

/** Everything of `podman run` before the image. */
export function flagsOf(machine: Machine, name: string, service: Service): string[] {
  const known = new Set(Object.keys(understood))
  const unknown = Object.keys(service).filter((key) => !known.has(key))
  // A setting that is not translated would not be tested.
  if (unknown.length > 0) throw new Error(`compose.yaml: ${unknown.join(', ')} of ${name} is not known to this test.`)
  return Object.entries(understood).flatMap(([key, translate]) =>
    service[key as keyof Service] === undefined ? [] : translate(service, machine, name),
  )
}

type Translate = (service: Service, machine: Machine, name: string) => string[]
const nothing: Translate = () => []

const understood: Record<keyof Service, Translate> = {
  image: nothing,
  build: nothing,
  command: nothing,
  depends_on: nothing,
  restart: ({ restart }) => ['--restart', restart!],
  env_file: nothing,
  environment: (service, { values }) =>
    each(
      '--env',
      Object.entries(environmentOf(service, values)).map((pair) => pair.join('=')),
    ),
  init: ({ init }) => (init ? ['--init'] : []),
  read_only: ({ read_only }) => (read_only ? ['--read-only', '--read-only-tmpfs=false'] : []),
  privileged: ({ privileged }) => (privileged ? ['--privileged'] : []),
  user: ({ user }) => ['--user', user!],
  cap_drop: ({ cap_drop }) => each('--cap-drop', cap_drop),
  cap_add: ({ cap_add }) => each('--cap-add', cap_add),
  security_opt: ({ security_opt }) => each('--security-opt', security_opt!.map(securityOption)),
  devices: ({ devices }, machine) =>
    each(
      '--device',
      devices!.map((device) => `${machine.devices[device] ?? device}:${device}`),
    ),
  tmpfs: ({ tmpfs }) => each('--tmpfs', tmpfs),
  sysctls: ({ sysctls }) =>
    each(
      '--sysctl',
      Object.entries(sysctls!).map((pair) => pair.join('=')),
    ),
  mem_limit: ({ mem_limit }) => ['--memory', mem_limit!],
  pids_limit: ({ pids_limit }) => ['--pids-limit', String(pids_limit)],
  shm_size: ({ shm_size }) => ['--shm-size', shm_size!],
  ports: ({ ports }, { address }) =>
    each(
      '--publish',
      ports!.map((port) => `${address}:${port}`),
    ),
  volumes: ({ volumes }, machine) =>
    each(
      '--volume',
      volumes!.map((volume) => volumeFlag(machine, volume)),
    ),
  networks: ({ networks }, machine, name) => {
    const [[network, settings]] = Object.entries(
      Array.isArray(networks) ? Object.fromEntries(networks.map((one) => [one, {}])) : networks!,
    ) as [[string, { ipv4_address?: string }]]
    const options = [`alias=${name}`, ...(settings.ipv4_address ? [`ip=${settings.ipv4_address}`] : [])]
    const hosts = Object.entries(machine.hosts).map((pair) => pair.join(':'))
    return ['--network', `${machine.name}-${network}:${options.join(',')}`, ...each('--add-host', hosts)]
  },
  // Podman leaves the asking to systemd; `isHealthy` asks instead.
  healthcheck: () => ['--no-healthcheck'],
  stop_grace_period: ({ stop_grace_period }) => ['--stop-timeout', String(Number.parseInt(stop_grace_period!, 10))],
}

// Podman's own are more than may be given on a machine where even root is bounded.
const bounds = readFileSync('/proc/self/limits', 'utf8')
const files = /^Max open files +\S+ +(\d+)/m.exec(bounds)![1]!
export const limits = ['--ulimit', `nofile=${files}:${files}`, '--ulimit', 'nproc=4096:4096']

export const containerOf = (machine: Machine, name: string) => `${machine.name}-${name}`

/** Starts a service in the background. */
export async function start(machine: Machine, name: string, service = machine.compose.services[name]!): Promise<void> {
  const flags = [...flagsOf(machine, name, service), ...limits]
  await podman('run', '--detach', '--name', containerOf(machine, name), ...flags, service.image, ...service.command!)
}

/** Runs a service to its end. */
export async function runToEnd(machine: Machine, name: string, service = machine.compose.services[name]!) {
  const flags = [...flagsOf(machine, name, { ...service, restart: undefined }), ...limits]
  return tryPodman('run', '--rm', '--name', containerOf(machine, name), ...flags, service.image, ...service.command!)
}

/** Whether the service's own check says so, run as the runtime runs it. */
export async function isHealthy(machine: Machine, name: string): Promise<boolean> {
  const [kind, ...command] = machine.compose.services[name]!.healthcheck!.test!
  if (kind !== 'CMD') throw new Error(`The health check of ${name} is not a command.`)
  return (await tryPodman('exec', containerOf(machine, name), ...command)).code === 0
}
