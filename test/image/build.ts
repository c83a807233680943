// Builds the image of the Dockerfile, on a base made of Debian's packages where none can be pulled.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from './compose.ts'
import { limits, podman, tryPodman } from './podman.ts'

const run = promisify(execFile)
const suite = 'bookworm'

/** The image that the Dockerfile begins with, in full. */
async function baseName(): Promise<string> {
  const dockerfile = await readFile(join(root, 'Dockerfile'), 'utf8')
  return `docker.io/library/${/^FROM (\S+) AS/m.exec(dockerfile)![1]}`
}

/** Debian as small as it comes, with the Node of node_modules and the npm of this machine, in the places of the official image. */
export async function makeBase(scratch: string): Promise<void> {
  const name = await baseName()
  if ((await tryPodman('image', 'exists', name)).code === 0) return
  const tree = join(scratch, 'base')
  await run('debootstrap', ['--variant=minbase', suite, tree, await debianMirror()], { maxBuffer: 64 << 20 })
  const local = join(tree, 'usr/local')
  await mkdir(join(local, 'lib/node_modules'), { recursive: true })
  await cp(await realpath(join(root, 'node_modules/node/bin/node')), join(local, 'bin/node'))
  const { stdout: globalModules } = await run('npm', ['root', '--global'])
  await cp(join(globalModules.trim(), 'npm'), join(local, 'lib/node_modules/npm'), { recursive: true })
  for (const tool of ['npm', 'npx']) {
    await symlink(`../lib/node_modules/npm/bin/${tool}-cli.js`, join(local, 'bin', tool))
  }
  const { stdout: settings } = await run('apt-config', ['dump', 'Acquire'])
  await writeFile(join(tree, 'etc/apt/apt.conf.d/90machine'), settings)
  await run('chroot', [tree, 'useradd', '--uid', '1000', '--create-home', '--shell', '/bin/bash', 'node'])
  const tar = spawn('tar', ['-C', tree, '-c', '.'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const path = 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  const imported = spawn('podman', ['import', '--change', path, '-', name], {
    stdio: [tar.stdout, 'ignore', 'inherit'],
  })
  const [code] = await once(imported, 'exit')
  if (code !== 0) throw new Error(`podman import ended with ${code}`)
  await rm(tree, { recursive: true })
}

/** Where this machine gets its Debian packages. */
async function debianMirror(): Promise<string> {
  const { stdout } = await run('apt-get', ['indextargets', '--format', '$(REPO_URI) $(CODENAME)'])
  const line = stdout.split('\n').find((one) => one.endsWith(` ${suite}`))
  if (!line) throw new Error(`apt on this machine knows no Debian ${suite}`)
  return line.split(' ')[0]!
}

/** Builds with the registry of this machine's npm, which is in no file of the repository. */
export async function buildImage(scratch: string, image: string): Promise<void> {
  const npm = async (key: string) => (await run('npm', ['config', 'get', key])).stdout.trim()
  const lines = [`registry=${await npm('registry')}`]
  const certificates = await npm('cafile')
  const mounts: string[] = []
  if (certificates !== 'null') {
    lines.push('cafile=/run/machine-ca.crt')
    mounts.push('--volume', `${certificates}:/run/machine-ca.crt:ro`)
  }
  const npmrc = join(scratch, 'npmrc')
  await writeFile(npmrc, `${lines.join('\n')}\n`, { mode: 0o600 })
  const args = ['--network', 'host', ...limits, '--format', 'docker', '--pull=never', ...mounts]
  const build = spawn(
    'podman',
    ['--runtime', 'runc', 'build', ...args, '--secret', `id=npmrc,src=${npmrc}`, '--tag', image, root],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  )
  const [code] = await once(build, 'exit')
  if (code !== 0) throw new Error(`podman build ended with ${code}`)
}

/** Megabytes. */
export async function sizeOf(image: string): Promise<number> {
  return Math.round(Number(await podman('image', 'inspect', '--format', '{{.Size}}', image)) / 1e6)
}
