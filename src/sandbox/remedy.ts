// Suggests what to change if sandboxes don't work: kernel settings, or permissions of the container.
import { execFile } from 'node:child_process'
import { access, constants, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const SYS_ADMIN = 21n

export type Surroundings = {
  root: boolean
  /** A file's text; empty if it can't be read. */
  read(path: string): Promise<string>
  /** Whether a program in its own user namespace may set the host name, which containers' seccomp profiles refuse. */
  canNameHost(): Promise<boolean>
}

const here: Surroundings = {
  root: process.getuid?.() === 0,
  read: (path) => readFile(path, 'utf8').catch(() => ''),
  canNameHost: () =>
    run('unshare', ['--user', '--map-root-user', '--uts', '--', 'hostname', 'berth']).then(
      () => true,
      () => false,
    ),
}

/** A clause that says what to change, from the state of the process and the kernel; empty if no cause is found. */
export async function remedyOf({ root, read, canNameHost }: Surroundings = here): Promise<string> {
  const status = await read('/proc/self/status')
  const capabilities = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0'}`)
  if (root && ((capabilities >> SYS_ADMIN) & 1n) === 0n) {
    return 'run it as another user than root, who has no rights here (compose: `user: node`)'
  }
  const settings: string[] = []
  const setting = async (name: string, bad: string, good: string) => {
    if ((await read(`/proc/sys/${name.replaceAll('.', '/')}`)).trim() === bad) settings.push(`${name}=${good}`)
  }
  await setting('user.max_user_namespaces', '0', '10000')
  if (!root) {
    await setting('kernel.unprivileged_userns_clone', '0', '1')
    await setting('kernel.apparmor_restrict_unprivileged_userns', '1', '0')
  }
  if (settings.length > 0) return `set on this machine, by sysctl, ${settings.join(' and ')}`
  const options: string[] = []
  if (/^Seccomp:\s*2/m.test(status) && !(await canNameHost())) options.push('seccomp=deploy/seccomp.json')
  if (/\(enforce\)/.test(await read('/proc/self/attr/current'))) options.push('apparmor=unconfined')
  const isMasked = / \/proc\/(?!sys\/fs\/binfmt_misc)\S+ /.test(await read('/proc/self/mountinfo'))
  if (isMasked) options.push('systempaths=unconfined')
  if (options.length === 0) return ''
  return `add ${options.map((option) => `\`${option}\``).join(', ')} to the \`security_opt\` of this container, as compose.yaml does`
}

/** Like `remedyOf`, for a sandbox's network. Root creates the device itself. */
export async function deviceRemedy(root: boolean, device = '/dev/net/tun'): Promise<string> {
  if (root) return ''
  const opens = await access(device, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  )
  return opens ? '' : ` Give this process the device ${device} (compose: \`devices\`), with mode 0666.`
}
