// Ceph's radosgw with one monitor and one in-memory store: a real S3 service, up in 20 s (Debian: radosgw ceph-mon ceph-osd).
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { AwsClient } from 'aws4fetch'
import type { BucketOptions } from '../../src/platform/artifacts/bucket/client.ts'
import { freePort } from './ports.ts'
import { until } from './until.ts'

export type Radosgw = { options: BucketOptions; stop(): Promise<void> }

export function hasRadosgw(): boolean {
  try {
    execFileSync('sh', ['-c', 'command -v radosgw ceph-mon ceph-osd ceph radosgw-admin'])
    return true
  } catch {
    return false
  }
}

const accessKey = 'test-access-key'
const secretKey = 'test-secret-key'
const bucket = 'artifacts'

export async function startRadosgw(): Promise<Radosgw> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-radosgw-'))
  const [monitorPort, port] = [await freePort(), await freePort()]
  const fsid = randomUUID()
  const at = (name: string) => join(directory, name)
  await writeFile(at('ceph.conf'), configuration(directory, fsid, monitorPort, port))
  for (const name of ['mon', 'osd', 'rgw']) await mkdir(at(name))
  const env = { ...process.env, CEPH_CONF: at('ceph.conf') }
  const run = async (program: string, ...args: string[]) => (await promisify(execFile)(program, args, { env })).stdout
  const children: ChildProcess[] = []
  const start = (program: string, ...args: string[]) => {
    children.push(spawn(program, [...args, '-f'], { env, stdio: 'ignore' }))
  }
  async function stop(): Promise<void> {
    for (const child of children.reverse()) {
      if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit')
    }
    await rm(directory, { recursive: true, force: true })
  }
  try {
    const keyring = at('keyring')
    await run('ceph-authtool', '--create-keyring', keyring, '--gen-key', '-n', 'mon.', '--cap', 'mon', 'allow *')
    const caps = ['--cap', 'mon', 'allow *', '--cap', 'osd', 'allow *', '--cap', 'mgr', 'allow *']
    await run('ceph-authtool', keyring, '--gen-key', '-n', 'client.admin', ...caps)
    await run('monmaptool', '--create', '--fsid', fsid, '--addv', 'a', `[v2:127.0.0.1:${monitorPort}]`, at('monmap'))
    await run('ceph-mon', '--mkfs', '-i', 'a', '--monmap', at('monmap'), '--keyring', keyring)
    start('ceph-mon', '-i', 'a')
    const uuid = randomUUID()
    await run('ceph', 'osd', 'new', uuid)
    await run('ceph-osd', '-i', '0', '--no-mon-config', '--mkfs', '--mkkey', '--osd-uuid', uuid)
    await run('ceph', 'auth', 'add', 'osd.0', 'osd', 'allow *', 'mon', 'allow profile osd', '-i', at('osd/keyring'))
    start('ceph-osd', '-i', '0')
    start('radosgw', '-n', 'client.admin')
    const user = ['--uid=test', '--display-name=test', `--access-key=${accessKey}`, `--secret-key=${secretKey}`]
    await run('radosgw-admin', 'user', 'create', ...user)
    const endpoint = `http://127.0.0.1:${port}`
    const client = new AwsClient({
      accessKeyId: accessKey,
      secretAccessKey: secretKey,
      service: 's3',
      region: 'us-east-1',
    })
    await until(
      async () => (await client.fetch(`${endpoint}/${bucket}`, { method: 'PUT' }).catch(() => null))?.ok,
      60_000,
    )
    const options = { endpoint, region: 'us-east-1', accessKey, secretKey, bucket, prefix: 'berth/one/' }
    return { options, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const configuration = (directory: string, fsid: string, monitorPort: number, port: number) => `[global]
fsid = ${fsid}
mon host = v2:127.0.0.1:${monitorPort}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon data avail crit = 1
mon data avail warn = 1
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 1073741824
osd data = ${directory}/osd
mon data = ${directory}/mon
run dir = ${directory}
admin socket = ${directory}/$name.asok
log file = ${directory}/$name.log
pid file = ${directory}/$name.pid
[osd]
keyring = ${directory}/osd/keyring
[client]
keyring = ${directory}/keyring
rgw data = ${directory}/rgw
rgw frontends = beast endpoint=127.0.0.1:${port}
`
