import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { availableParallelism, cpus, homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { SandboxError } from '../../src/sandbox/sandbox.ts'
import { until } from '../helpers/until.ts'
import {
  bubblewrap,
  cleanUp,
  command,
  directory,
  give,
  internet,
  limits,
  processesWith,
  run,
  bubblewrapTest as test,
} from './sandboxes.ts'

afterAll(cleanUp)
const root = join(import.meta.dirname, '../..')

describe('a command in the sandbox', () => {
  test('gives back its output, both streams, and its exit code', async () => {
    const result = await run(await bubblewrap(), 'echo out; echo err >&2; exit 7')
    expect(result).toEqual({ code: 7, signal: null, reason: 'exit', stdout: 'out\n', stderr: 'err\n' })
  })

  test('tells a death by signal', async () => {
    expect(await run(await bubblewrap(), 'kill -SEGV $$')).toMatchObject({
      code: 139,
      signal: 'SIGSEGV',
      reason: 'exit',
    })
  })

  test('shows its output while it runs', async () => {
    const workTree = await directory()
    const asked = await command('echo first; until [ -e go ]; do sleep 0.05; done; echo second', { workTree })
    const started = (await bubblewrap()).run(asked)
    await until(() => asked.output.stdout === 'first\n')
    await writeFile(join(workTree, 'go'), '')
    await started.exited
    expect(asked.output.stdout).toBe('first\nsecond\n')
  })

  test('rejects what cannot be started, as the fault of the sandbox', async () => {
    await expect(run(await bubblewrap(), ['/no/such/program'])).rejects.toThrow(SandboxError)
    await expect(run(await bubblewrap(), 'true', { workTree: '/no/such/tree' })).rejects.toThrow('no directory')
    await expect(run(await bubblewrap(), 'true', { cwd: '../..' })).rejects.toThrow('leaves the work tree')
    await expect(run(await bubblewrap(), 'true', { environment: { A: 'x\0--bind\0/\0/' } })).rejects.toThrow('NUL')
  })

  test('reads nothing below /proc that tells of the machine, and what programs need', async () => {
    const own = await readFile('/proc/sys/kernel/random/boot_id', 'utf8')
    const script = `cd /proc
      for file in cmdline config.gz keys key-users modules kallsyms iomem ioports vmallocinfo interrupts timer_list \
        timer_stats sched_debug latency_stats diskstats partitions swaps mdstat locks sys/kernel/core_pattern \
        kcore kmsg kpageflags sysrq-trigger softirqs vmstat zoneinfo buddyinfo schedstat sys/fs/file-nr \
        sys/fs/inode-nr sys/fs/inode-state sys/fs/dentry-state; do
        head -c 1 $file 2> /dev/null | wc -c
      done | sort -u
      ls -A acpi asound bus driver fs irq pressure scsi 2> /dev/null | grep -v :
      ls -A /sys 2> /dev/null
      cat sys/kernel/random/boot_id
      for file in cpuinfo meminfo stat version loadavg uptime self/status self/cmdline sys/vm/overcommit_memory \
        sys/kernel/osrelease sys/kernel/random/uuid filesystems; do
        head -c 1 $file > /dev/null || echo $file
      done`
    const { stdout, stderr } = await run(await bubblewrap(), script)
    expect(stderr).toBe('')
    const [lengths, bootId, ...rest] = stdout.trim().split(/\n+/)
    expect([lengths, rest]).toEqual(['0', []])
    expect(bootId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect(bootId).not.toBe(own.trim())
    const stat = await run(await bubblewrap(), 'cat /proc/stat')
    const processors = stat.stdout.split('\n').filter((line) => /^cpu\d/.test(line))
    expect(processors).toEqual(cpus().map((_, index) => expect.stringMatching(new RegExp(`^cpu${index}( 0){7,10}$`))))
    expect(stat.stdout.replace(/^btime .*$/m, '')).not.toMatch(/\s[1-9]/)
    const writes = 'echo x > /proc/cmdline; mkdir /proc/fs/x; umount /proc/cmdline'
    expect((await run(await bubblewrap(), writes)).code).not.toBe(0)
  })

  test('counts the processors of the machine in Node and Python, and runs what looks at it', async () => {
    const script = `node -p "os.cpus().length + ' ' + os.availableParallelism() + ' ' + (os.totalmem() > 0)"
      if command -v python3 > /dev/null; then python3 -c 'import os; print(os.cpu_count())'; else nproc --all; fi
      for tool in 'free' 'ps -ef' 'top -b -n 1' 'uptime' 'git --version' 'npm --version'; do
        command -v \${tool%% *} > /dev/null || continue
        $tool > /dev/null || echo "$tool failed"
      done`
    const { stdout, stderr } = await run(await bubblewrap(), script)
    expect([stdout.trim().split('\n'), stderr]).toEqual([
      [`${cpus().length} ${availableParallelism()} true`, String(cpus().length)],
      '',
    ])
  })

  test('has exactly the environment that was given, and PATH, HOME and PWD', async () => {
    const { stdout } = await run(await bubblewrap(), ['/usr/bin/env', '-0'], {
      environment: { A: "it's\n$B", CI: '1' },
    })
    const names = stdout.split('\0').filter(Boolean)
    expect(names.map((line) => line.split('=')[0]).sort()).toEqual(['A', 'CI', 'HOME', 'PATH', 'PWD'])
    expect(names).toContain("A=it's\n$B")
  })

  test('has no descriptor of ours but its output', async () => {
    const { stdout } = await run(await bubblewrap(), 'for fd in /proc/$$/fd/*; do readlink $fd; done')
    const others = stdout.split('\n').filter((line) => line && !/^socket:|^\/dev\/null$/.test(line))
    expect(others).toEqual([])
    expect(stdout.match(/socket:/g)).toHaveLength(2)
  })

  test('writes into the work tree and starts in the folder asked for', async () => {
    const workTree = await directory()
    await mkdir(join(workTree, 'site'))
    await writeFile(join(workTree, 'site', 'old.txt'), 'old')
    await give(join(workTree, 'site'))
    await give(join(workTree, 'site', 'old.txt'))
    const script = 'pwd; cat old.txt; echo new > old.txt; mkdir made; touch ../made'
    const result = await run(await bubblewrap(), script, { workTree, cwd: 'site' })
    expect(result).toMatchObject({ code: 0, stdout: '/build/site\nold' })
  })

  test('runs the Node of this server, and npm', async () => {
    const { stdout, code } = await run(await bubblewrap(), 'node --version; npm --version')
    expect(code).toBe(0)
    expect(stdout.split('\n')[0]).toBe(process.version)
  })

  test('keeps caches from one run to the next, and sees further paths read-only', async () => {
    const [host, readOnly] = [await directory(), await directory()]
    await writeFile(join(readOnly, 'given'), 'given\n')
    const more = { caches: [{ host, inside: '/cache' }], readOnly: [{ host: readOnly, inside: readOnly }] }
    await run(await bubblewrap(), 'echo kept > /cache/a', more)
    const script = `cat /cache/a ${readOnly}/given; touch ${readOnly}/b 2>/dev/null || echo refused`
    expect((await run(await bubblewrap(), script, more)).stdout).toBe('kept\ngiven\nrefused\n')
  })
})

describe('a command cannot', () => {
  test('read the files of the host', async () => {
    const secret = join(await directory(), 'secret')
    await writeFile(secret, 'secret', { mode: 0o666 })
    const paths = [
      ...[secret, root, join(root, 'package.json'), homedir(), '/root', '/home/root', '/var', '/srv', '/sys', '/run'],
      ...['/etc/shadow', '/etc/ssh', '/etc/ssl/private', '/etc/resolv.conf', '/etc/hostname', '/boot', '/mnt'],
      ...['/proc/1/root/root', '/proc/1/cwd/root', '/proc/self/root/root', '/dev/vda', '/dev/kmsg', '/dev/mem'],
    ]
    const script = paths.map((path) => `ls -d '${path}' 2>/dev/null`).join('; ')
    expect((await run(await bubblewrap(), script)).stdout).toBe('')
    expect((await run(await bubblewrap(), 'ls -A /tmp /home/build /home')).stdout).toBe(
      '/home:\nbuild\n\n/home/build:\n\n/tmp:\n',
    )
  })

  test('write anywhere but in its tree and its private temporary directories', async () => {
    const script =
      'for d in / /etc /usr /usr/bin /opt /opt/node /dev /home /proc/sys/kernel; do touch $d/x && echo $d; done'
    expect((await run(await bubblewrap(), script)).stdout).toBe('')
    expect((await run(await bubblewrap(), 'touch /tmp/a /dev/shm/b ~/c /build/d')).code).toBe(0)
  })

  test('gain rights: no capability, no set-user-id program, no further namespace', async () => {
    const script = 'id -u; grep -E "Cap(Prm|Eff|Bnd)|NoNewPrivs" /proc/self/status; unshare -U true || echo refused'
    const { stdout } = await run(await bubblewrap(), script)
    expect(stdout.replaceAll('\t', ' ').split('\n')).toEqual([
      '1000',
      'CapPrm: 0000000000000000',
      'CapEff: 0000000000000000',
      'CapBnd: 0000000000000000',
      'NoNewPrivs: 1',
      'refused',
      '',
    ])
  })

  test('be root outside', async () => {
    const workTree = await directory()
    const asked = await command('touch mine; sleep 20', { workTree })
    const started = (await bubblewrap()).run(asked)
    const owner = () => stat(join(workTree, 'mine')).then(({ uid }) => uid)
    await until(() => existsSync(join(workTree, 'mine')))
    expect(await owner()).not.toBe(0)
    await started.kill()
  })

  test('see or signal processes of the host', async () => {
    const script = `ls /proc | grep -c '^[0-9]'; kill -0 ${process.pid} 2>/dev/null || echo unknown`
    const [count, answer] = (await run(await bubblewrap(), script)).stdout.split('\n')
    expect(Number(count)).toBeLessThan(8)
    expect(answer).toBe('unknown')
  })

  test('connect to servers on the loopback of the host, nor to their unix sockets', async () => {
    const tcp = createServer().listen(0, '127.0.0.1')
    // As PostgreSQL names its socket, where every user may connect.
    const path = join(tmpdir(), `.s.PGSQL.${process.pid}`)
    const unix = createServer().listen(path)
    await Promise.all([once(tcp, 'listening'), once(unix, 'listening')])
    try {
      const targets = [{ port: (tcp.address() as AddressInfo).port, host: '127.0.0.1' }, { path }, { path: '\0berth' }]
      const program = `
        const targets = ${JSON.stringify(targets)}
        for (const target of targets) require('net').connect(target)
          .on('connect', () => console.log('connected')).on('error', (error) => console.log(error.code))`
      const { stdout } = await run(await bubblewrap(), ['node', '-e', program])
      expect(stdout.split('\n').filter(Boolean).sort()).toEqual(['ECONNREFUSED', 'ECONNREFUSED', 'ENOENT'])
    } finally {
      tcp.close()
      unix.close()
    }
  })

  test('see the tree or the files of another run', async () => {
    const sandbox = await bubblewrap()
    const other = await command('echo hello > /tmp/theirs; echo hello > /build/theirs; sleep 20')
    const running = sandbox.run(other)
    const script = `sleep 0.5; ls -d ${other.workTree} /tmp/theirs; find /tmp /build /home /opt /dev -name theirs`
    expect((await run(sandbox, `${script} 2>/dev/null`)).stdout).toBe('')
    await running.kill()
  })

  test('have anything mounted within its tree, where a link that its repository brought would lead the mount', async () => {
    const workTree = await directory()
    await symlink('/etc', join(workTree, 'node_modules'))
    const mount = { host: await directory(), inside: '/build/node_modules' }
    for (const more of [{ caches: [mount] }, { readOnly: [mount] }])
      await expect(run(await bubblewrap(), 'true', { workTree, ...more })).rejects.toThrow('no place for a mount')
  })

  test('move, replace or write beside its tree', async () => {
    const script = 'mv /build /old || echo busy; ln -s /etc /beside || echo closed; rmdir /build || echo busy; ls /'
    const { stdout } = await run(await bubblewrap(), `(${script}) 2>/dev/null`)
    expect(stdout).toContain('busy\nclosed\nbusy\n')
    expect(stdout).not.toMatch(/^(old|beside)$/m)
  })

  test('change a tree that is mounted for reading', async () => {
    const workTree = await directory()
    await writeFile(join(workTree, 'a'), 'a')
    await give(join(workTree, 'a'))
    const script = 'cat a; (echo b > a || echo refused; touch b || echo refused; rm a || echo refused) 2>/dev/null'
    expect((await run(await bubblewrap(), script, { workTree, writable: false })).stdout).toBe(
      'arefused\nrefused\nrefused\n',
    )
  })

  test('show its variables to other users of the host', async () => {
    const asked = await command('echo up; sleep 20', {
      environment: { SECRET: 'tell-nobody-4711' },
      limits,
      network: internet,
    })
    const running = (await bubblewrap()).run(asked)
    await until(() => asked.output.stdout === 'up\n')
    expect(processesWith('tell-nobody-4711')).toEqual([])
    await running.kill()
  })
})
