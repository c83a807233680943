import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { chown, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { until } from '../helpers/until.ts'
import { networkTest as test } from './outside.ts'
import {
  bubblewrap,
  cleanUp,
  command,
  controlGroups,
  directory,
  internet as network,
  processesWith,
  uniqueSleep,
} from './sandboxes.ts'

afterAll(cleanUp)
const root = join(import.meta.dirname, '../..')

describe('nothing of the network is left', () => {
  const namespaceOf = (pid: string) => {
    try {
      return readlinkSync(`/proc/${pid}/ns/net`)
    } catch {
      return ''
    }
  }
  const pids = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  /** Processes in the namespace of the command that has the text in it, and the slirp4netns that serves it. */
  function networkOf(text: string) {
    const host = readlinkSync('/proc/self/ns/net')
    const namespace = processesWith(text)
      .map(namespaceOf)
      .find((name) => name !== '' && name !== host)!
    const holder = processesWith('ip_unprivileged_port_start').find((pid) => namespaceOf(pid) === namespace)
    return {
      slirp: () => processesWith(` ${holder} tap0`),
      inside: () => pids().filter((pid) => namespaceOf(pid) === namespace),
    }
  }
  const started = async (text: string) => {
    const asked = await command(`: ${text}; trap '' TERM; echo ready; while ! [ -e end ]; do sleep 0.05; done`, {
      network,
    })
    const process = (await bubblewrap()).run(asked)
    await until(() => asked.output.stdout === 'ready\n')
    const made = networkOf(text)
    expect([made.slirp().length, made.inside().length > 2]).toEqual([1, true])
    return { process, made, end: () => writeFile(join(asked.workTree, 'end'), '') }
  }

  test('after its end, and after kill', async () => {
    const killed = await started(uniqueSleep())
    await killed.process.kill()
    expect([...killed.made.slirp(), ...killed.made.inside()]).toEqual([])
    const ended = await started(uniqueSleep())
    await ended.end()
    expect((await ended.process.exited).code).toBe(0)
    expect([...ended.made.slirp(), ...ended.made.inside()]).toEqual([])
  })

  test('when slirp4netns ends before the command: the run ends too, as a fault of the sandbox', async () => {
    const { process: running, made } = await started(uniqueSleep())
    process.kill(Number(made.slirp()[0]), 'SIGKILL')
    await expect(running.exited).rejects.toThrow('network of the sandbox was lost')
    expect(made.inside()).toEqual([])
  })

  test('after a kill at any moment of the start', async () => {
    const children = () => pids().filter((pid) => parentOf(pid) === String(process.pid))
    const sandbox = await bubblewrap()
    const before = children()
    for (const waitMs of [0, 5, 10, 20, 30, 50, 80]) {
      const run = sandbox.run(await command('sleep 20', { network }))
      // Not a wait for anything: the moments that are tried.
      await new Promise((resolve) => setTimeout(resolve, waitMs))
      await run.kill()
      expect((await run.exited).reason).toBe('killed')
    }
    await until(() => children().every((pid) => before.includes(pid)))
  })
  const parentOf = (pid: string) => {
    try {
      return /.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
    } catch {
      return undefined
    }
  }

  /** A server that is not root gets the device as machines give it to all users: in a mount namespace of its own. */
  const asUser = (id: string) => [
    ...['unshare', '--mount', '--propagation', 'private', '--', '/bin/sh', '-c'],
    'mount -t tmpfs -o mode=0755 berth /dev/net && mknod -m 0666 /dev/net/tun c 10 200 && exec "$@"',
    ...['berth', 'setpriv', '--reuid', id, '--regid', id, '--clear-groups', 'env', `HOME=${tmpdir()}`],
  ]

  for (const user of ['root', '61050']) {
    test(`after kill -9 of the server, as user ${user}`, async ({ skip }) => {
      const [runDirectory, workTree, sleep] = [await directory(), await directory(), uniqueSleep()]
      const become = user === 'root' ? [] : asUser(user)
      const parentFile = join(import.meta.dirname, 'parent.ts')
      if (user !== 'root') {
        const [program, ...rest] = [...become, process.execPath, '-e', `require('fs').accessSync('${parentFile}')`]
        if (spawnSync(program!, rest).status !== 0) return skip('another user cannot read this checkout')
        for (const path of [runDirectory, workTree]) await chown(path, Number(user), Number(user))
      }
      const node = [process.execPath, '--import', 'tsx', parentFile, runDirectory, workTree, sleep, 'bubblewrap']
      const [program, ...rest] = [...become, ...node]
      const parent = spawn(program!, rest, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
      const exited = once(parent, 'exit')
      await once(parent.stdout, 'data')
      const made = networkOf(sleep)
      expect([made.slirp().length, made.inside().length > 2]).toEqual([1, true])
      parent.kill('SIGKILL')
      await exited
      const left = async () => [
        ...[...made.slirp(), ...made.inside()],
        ...[...controlGroups(parent.pid!).all, ...(await readdir(runDirectory))],
      ]
      await until(async () => (await left()).length === 0)
    })
  }
})
