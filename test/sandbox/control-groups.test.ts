import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { openControlGroups } from '../../src/sandbox/processes/control-groups.ts'
import { cleanUp, directory } from './sandboxes.ts'

afterAll(cleanUp)

const limits = { memoryMb: 100, processes: 10, cpus: 1.5, timeoutMs: 1 }

/** Plain files in place of the kernel's: what is read of them and written to them is what is shown here. */
async function machine(mounts: (top: string) => string, memberships: string, groups: string[]) {
  const top = await directory()
  for (const group of groups) {
    await mkdir(join(top, group), { recursive: true })
    await writeFile(join(top, group, 'cgroup.controllers'), 'cpuset cpu io memory pids\n')
    await writeFile(join(top, group, 'cgroup.subtree_control'), 'cpu memory pids\n')
  }
  const self = await directory()
  await writeFile(join(self, 'mountinfo'), mounts(top))
  await writeFile(join(self, 'cgroup'), memberships)
  return { top, self }
}

describe('control groups', () => {
  test('of version 1 are made below those this process is in, each controller in its hierarchy', async () => {
    const mounts = (top: string) =>
      ['memory', 'cpu,cpuacct', 'pids']
        .map((name) => `30 25 0:26 / ${top}/${name} rw,relatime shared:9 - cgroup cgroup rw,${name}\n`)
        .join('')
    const memberships = '4:memory:/system.slice/berth\n3:pids:/\n1:cpu,cpuacct:/system.slice\n0::/\n'
    const groups = ['memory/system.slice/berth', 'pids', 'cpu,cpuacct/system.slice']
    const { top, self } = await machine(mounts, memberships, groups)
    const opened = (await openControlGroups('berth-1', self))!
    expect(opened.version).toBe(1)
    const group = await opened.create('7', limits)
    const memory = join(top, 'memory/system.slice/berth/berth-1/7')
    expect(await readFile(join(memory, 'memory.limit_in_bytes'), 'utf8')).toBe(String(100 * 1024 * 1024))
    expect(await readFile(join(top, 'pids/berth-1/7/pids.max'), 'utf8')).toBe('10')
    expect(await readFile(join(top, 'cpu,cpuacct/system.slice/berth-1/7/cpu.cfs_quota_us'), 'utf8')).toBe('150000')
    expect(group.entrances).toContain(join(memory, 'cgroup.procs'))
    await writeFile(join(memory, 'memory.max_usage_in_bytes'), '60000000\n')
    expect(await group.outOfMemory()).toBe(null)
    await writeFile(join(memory, 'memory.oom_control'), 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\n')
    expect(await group.outOfMemory()).toBe('machine')
    await writeFile(join(memory, 'memory.max_usage_in_bytes'), `${100 * 1024 * 1024 - 4096}\n`)
    expect(await group.outOfMemory()).toBe('group')
  })

  test('of version 2 are made beside the group this process is in, when that has no room for groups', async () => {
    const mounts = (top: string) => `30 25 0:26 / ${top} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n`
    const { top, self } = await machine(mounts, '0::/berth.service/main\n', ['.', 'berth.service'])
    // Not writable, as the kernel answers for a group that has processes.
    await mkdir(join(top, 'berth.service/main/cgroup.subtree_control'), { recursive: true })
    const opened = (await openControlGroups('berth-1', self))!
    expect(opened).toMatchObject({ version: 2, directories: [join(top, 'berth.service/berth-1')] })
    const group = await opened.create('7', limits)
    const file = (name: string) => join(top, 'berth.service/berth-1/7', name)
    expect(group.entrances).toEqual([file('cgroup.procs')])
    const written = ['memory.max', 'memory.swap.max', 'memory.oom.group', 'pids.max', 'cpu.max']
    const values = await Promise.all(written.map((name) => readFile(file(name), 'utf8')))
    expect(values).toEqual([String(100 * 1024 * 1024), '0', '1', '10', '150000 100000'])
    await writeFile(file('memory.events'), 'low 0\nmax 3\noom 1\noom_kill 0\noom_group_kill 0\n')
    expect(await group.outOfMemory()).toBe(null)
    await writeFile(file('memory.events'), 'low 0\nmax 3\noom 1\noom_kill 2\noom_group_kill 1\n')
    expect(await group.outOfMemory()).toBe('group')
    // Its limit was reached, but it was the machine that had no memory.
    await writeFile(file('memory.events'), 'low 0\nmax 3\noom 0\noom_kill 2\noom_group_kill 1\n')
    expect(await group.outOfMemory()).toBe('machine')
  })

  test('of version 2 are made below the group of a service, which this process leaves for one below', async () => {
    const mounts = (top: string) => `30 25 0:26 / ${top} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n`
    const open = async (pids: number[]) => {
      const { top, self } = await machine(mounts, '0::/berth.service\n', ['.', 'berth.service'])
      const own = join(top, 'berth.service')
      await writeFile(join(own, 'cgroup.procs'), `${pids.join('\n')}\n`)
      const opened = await openControlGroups('berth-1', self)
      expect(opened?.directories).toEqual([join(own, 'berth-1')])
      return readFile(join(own, 'berth/cgroup.procs'), 'utf8').catch(() => null)
    }
    expect(await open([process.pid])).toBe(String(process.pid))
    // In a container with an init, which moves too.
    expect(await open([1, process.pid])).toBe(String(process.pid))
    // Others' processes, such as those of a terminal, are left where they are.
    expect(await open([process.pid, process.ppid])).toBe(null)
  })

  test('are done without where there are none', async () => {
    const { self } = await machine(() => '30 25 0:26 / /tmp rw - tmpfs tmpfs rw\n', '0::/\n', [])
    expect(await openControlGroups('berth-1', self)).toBeUndefined()
    expect(await openControlGroups('berth-1', '/no/such/directory')).toBeUndefined()
  })
})
