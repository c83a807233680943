// The filter of system calls: its program for both architectures, and what a sandboxed command meets here.
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ABSENT, CHECKED, REFUSED, seccompFilter, UNSUPPORTED } from '../../src/sandbox/seccomp.ts'
import { bubblewrap, bubblewrapTest, cleanUp, directory, run } from './sandboxes.ts'

afterAll(cleanUp)

type Call = { architecture: number; number: number; arguments: bigint[] }
const ALLOWED = 0x7fff0000
const KILLED = 0x80000000
const [EPERM, ENOSYS, EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT] = [1, 38, 93, 95, 97]
const errno = (value: number) => 0x50000 | value

/** What the kernel does with a filter, for the instructions that it uses; any other fails. */
function answer(filter: Buffer, call: Call): number {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(call.number >>> 0, 0)
  data.writeUInt32LE(call.architecture, 4)
  for (const [index, value] of call.arguments.entries())
    data.writeBigUInt64LE(BigInt.asUintN(64, value), 16 + 8 * index)
  let held = 0
  for (let at = 0; at < filter.length; at += 8) {
    const [code, k] = [filter.readUInt16LE(at), filter.readUInt32LE(at + 4)]
    if (code === 0x06) return k
    if (code === 0x20) {
      held = data.readUInt32LE(k)
      continue
    }
    const holds = { 21: held === k, 53: held >= k, 69: (held & k) !== 0 }[code]
    if (holds === undefined) throw new Error(`Instruction ${code} is not known.`)
    at += 8 * filter.readUInt8(at + (holds ? 2 : 3))
  }
  throw new Error('The program has no end.')
}

const architectures = { x64: 0xc000003e, arm64: 0xc00000b7 }
const foreign = { i386: 0x40000003, arm: 0x40000028, riscv64: 0xc00000f3 }

describe.each(['x64', 'arm64'] as const)('the filter of %s', (arch) => {
  const filter = seccompFilter(arch)!
  const ask = (number: number, ...given: (number | bigint)[]) =>
    answer(filter, {
      architecture: architectures[arch],
      number,
      arguments: Array.from({ length: 6 }, (_, index) => BigInt(given[index] ?? 0)),
    })
  const numbers = (table: typeof REFUSED) => Object.values(table).flatMap((one) => one[arch] ?? [])

  test('refuses what it names, whatever the arguments, and nothing else', () => {
    const known = new Map([
      ...numbers(ABSENT).map((number) => [number, errno(ENOSYS)] as const),
      ...numbers(REFUSED).map((number) => [number, errno(EPERM)] as const),
      ...numbers(UNSUPPORTED).map((number) => [number, errno(EOPNOTSUPP)] as const),
    ])
    expect(known.size).toBe(numbers(ABSENT).length + numbers(REFUSED).length + numbers(UNSUPPORTED).length)
    const checked = numbers(CHECKED)
    const word = 2n ** 64n - 1n
    const wrong: number[] = []
    for (let number = 0; number < 600; number++) {
      if (checked.includes(number)) continue
      for (const given of [[], [word, word, word, word, word, word], [0x5412, 0x10000000, 40]])
        if (ask(number, ...given) !== (known.get(number) ?? ALLOWED)) wrong.push(number)
    }
    expect(wrong).toEqual([])
  })

  test('lets clone make processes and threads, but no namespace', () => {
    const clone = CHECKED.clone![arch]!
    // As fork, posix_spawn and pthread_create of the C library call it.
    for (const flags of [0x11, 0x1200011, 0x4111, 0x3d0f00]) expect(ask(clone, flags)).toBe(ALLOWED)
    for (const bit of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(ask(clone, bit | 0x11)).toBe(errno(EPERM))
      expect(ask(clone, (0xffn << 32n) | BigInt(bit))).toBe(errno(EPERM))
    }
  })

  test('lets ioctl put nothing into a terminal, also with bits that the kernel ignores', () => {
    const ioctl = CHECKED.ioctl![arch]!
    for (const request of [0x5401, 0x5413, 0x541b, 0x5421]) expect(ask(ioctl, 0, request)).toBe(ALLOWED)
    for (const request of [0x5412n, 0x541cn, 0x1_0000_5412n, 0xffff_ffff_0000_541cn])
      expect(ask(ioctl, 0, request)).toBe(errno(EPERM))
  })

  test('knows the families of sockets and the personalities that are harmless', () => {
    const [socket, personality] = [CHECKED.socket![arch]!, CHECKED.personality![arch]!]
    for (let family = 0; family < 64; family++)
      expect(ask(socket, family)).toBe([1, 2, 10, 16].includes(family) ? ALLOWED : errno(EAFNOSUPPORT))
    // Netlink for routes alone, whatever the bits that the kernel ignores.
    for (let protocol = 1; protocol < 32; protocol++) expect(ask(socket, 16, 3, protocol)).toBe(errno(EPROTONOSUPPORT))
    expect(ask(socket, 0x1_0000_0010n, 3, 0x1_0000_0006n)).toBe(errno(EPROTONOSUPPORT))
    expect(ask(socket, 16, 3, 0x1_0000_0000n)).toBe(ALLOWED)
    for (const persona of [0, 8, 0xffffffff]) expect(ask(personality, persona)).toBe(ALLOWED)
    for (const persona of [0x0040000, 0x0400000, 0x0100000]) expect(ask(personality, persona)).toBe(errno(EPERM))
  })

  test('kills programs of other architectures', () => {
    const others = { ...architectures, ...foreign, [arch]: undefined }
    for (const architecture of Object.values(others).filter((one) => one !== undefined))
      for (const number of [0, 1, 20, 60, 400])
        expect(answer(filter, { architecture, number, arguments: [] })).toBe(KILLED)
  })

  test('has no call with the numbers of x32', () => {
    const wanted = arch === 'x64' ? errno(ENOSYS) : ALLOWED
    for (const number of [0, 39, 56, 101, 321, 425, 512, 547]) expect(ask(0x40000000 | number)).toBe(wanted)
    expect(ask(-1)).toBe(wanted)
  })
})

test('there is none for other architectures', () => {
  expect(seccompFilter('riscv64')).toBeNull()
})

const arch = process.arch as 'x64' | 'arm64'

/** Makes the calls in the sandbox; for each, its errno or 0. Perl is part of every Debian. */
async function errors(asked: number[][]): Promise<number[]> {
  const lines = asked.map((call) => `$! = 0; my $r = syscall(${call.join(', ')}); print $r == -1 ? $!+0 : 0, "\\n";`)
  const { stdout, stderr, code } = await run(await bubblewrap(), ['perl', '-e', lines.join('\n')])
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
  return stdout.trim().split('\n').map(Number)
}

describe('a command in the sandbox', () => {
  bubblewrapTest('is under the filter, and so is what a server starts', async () => {
    const script = 'grep Seccomp: /proc/self/status; sh -c "grep Seccomp: /proc/self/status"'
    for (const more of [{}, { listen: {}, egress: { allow: [] } }])
      expect((await run(await bubblewrap(), script, more)).stdout).toBe('Seccomp:\t2\nSeccomp:\t2\n')
  })

  for (const [table, wanted] of [
    [ABSENT, ENOSYS],
    [REFUSED, EPERM],
    [UNSUPPORTED, EOPNOTSUPP],
  ] as const) {
    const known = Object.entries(table).filter(([, numbers]) => numbers[arch] !== null)
    bubblewrapTest(`gets errno ${wanted} from ${known.map(([name]) => name).join(', ')}`, async () => {
      const found = await errors(known.map(([, numbers]) => [numbers[arch]!, 0, 0, 0, 0, 0]))
      expect(known.map(([name], index) => [name, found[index]])).toEqual(known.map(([name]) => [name, wanted]))
    })
  }

  bubblewrapTest('is refused by argument', async () => {
    const [clone, ioctl, socket, personality] = ['clone', 'ioctl', 'socket', 'personality'].map(
      (name) => CHECKED[name]![arch]!,
    ) as [number, number, number, number]
    const found = await errors([
      [clone, 0x10000011, 0, 0, 0, 0],
      [ioctl, 0, 0x5412, 0],
      [ioctl, 0, 0x541c, 0],
      [socket, 40, 1, 0],
      [socket, 38, 5, 0],
      [socket, 2, 1, 0],
      [socket, 10, 2, 0],
      [socket, 1, 1, 0],
      [socket, 16, 3, 0],
      [socket, 16, 3, 6],
      [socket, 16, 3, 12],
      [personality, 0x40000],
      [personality, 0xffffffff],
    ])
    expect(found).toEqual([
      EPERM,
      EPERM,
      EPERM,
      EAFNOSUPPORT,
      EAFNOSUPPORT,
      0,
      0,
      0,
      0,
      ...[EPROTONOSUPPORT, EPROTONOSUPPORT],
      EPERM,
      0,
    ])
  })

  const onX64 = arch === 'x64' ? bubblewrapTest : test.skip
  onX64('is killed by a call of i386, and has none of x32', async () => {
    const workTree = await directory()
    // getpid by int 0x80, then exit(0) by syscall.
    const code = [0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05]
    await writeFile(join(workTree, 'old'), executable(Buffer.from(code)))
    await chmod(join(workTree, 'old'), 0o755)
    expect(await run(await bubblewrap(), './old', { workTree })).toMatchObject({ code: 159, signal: 'SIGSYS' })
    expect(await errors([[0x40000000 + 39]])).toEqual([ENOSYS])
  })

  bubblewrapTest('finds its interfaces, and starts and ends children without handles of processes', async () => {
    const script = `
      import asyncio, os, signal, socket, subprocess, sys
      print([name for _, name in socket.if_nameindex()])
      child = subprocess.Popen(['sleep', '60'])
      child.terminate()
      print(child.wait() == -signal.SIGTERM)
      async def ask():
        made = await asyncio.create_subprocess_exec('echo', 'child', stdout=asyncio.subprocess.PIPE)
        return (await made.communicate())[0].decode().strip()
      print(asyncio.run(ask()))
      try:
        os.pidfd_open(os.getpid())
      except OSError as error:
        print(error.errno)`
    const lines = script.split('\n').map((line) => line.replace(/^ {6}/, ''))
    const { stdout, stderr, code } = await run(await bubblewrap(), ['python3', '-c', lines.join('\n')])
    expect({ stdout, stderr, code }).toEqual({ stdout: `['lo']\nTrue\nchild\n${ENOSYS}\n`, stderr: '', code: 0 })
  })

  bubblewrapTest('runs Node with threads, npm, git, pipes and children', async () => {
    const threads = `
      const { Worker } = require('node:worker_threads')
      const { execFileSync } = require('node:child_process')
      const worker = new Worker('require("node:worker_threads").parentPort.postMessage(require("os").networkInterfaces())', { eval: true })
      worker.on('message', async (found) => {
        console.log('thread', typeof found, execFileSync('/bin/echo', ['child'], { encoding: 'utf8' }).trim())
        await require('node:fs/promises').writeFile('big', Buffer.alloc(1e6))
        console.log((await require('node:fs/promises').readFile('big')).length)
      })`
    const workTree = await directory()
    await writeFile(join(workTree, 'threads.cjs'), threads)
    const script = `set -e
      node threads.cjs
      npm --version > /dev/null
      git init -q . && git add -A && git -c user.name=a -c user.email=a@b.test commit -qm one && git clone -q . copy
      yes | head -n 100000 | sort -u
      (echo sub & wait)
      perl -e 'my $p = fork // die; exit 7 unless $p; waitpid $p, 0; print $? >> 8, "\\n"'`
    const { stdout, stderr, code } = await run(await bubblewrap(), script, { workTree })
    expect({ stdout, code, stderr: stderr.replace(/^npm warn.*\n/gm, '') }).toEqual({
      stdout: 'thread object child\n1000000\ny\nsub\n7\n',
      code: 0,
      stderr: '',
    })
  })
})

/** A static x86-64 program of only this code. */
function executable(code: Buffer): Buffer {
  const [address, headers] = [0x400000n, 64 + 56]
  const bytes = Buffer.alloc(headers)
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1])
  bytes.writeUInt16LE(2, 16)
  bytes.writeUInt16LE(62, 18)
  bytes.writeUInt32LE(1, 20)
  bytes.writeBigUInt64LE(address + BigInt(headers), 24)
  bytes.writeBigUInt64LE(64n, 32)
  bytes.writeUInt16LE(64, 52)
  bytes.writeUInt16LE(56, 54)
  bytes.writeUInt16LE(1, 56)
  bytes.writeUInt32LE(1, 64)
  bytes.writeUInt32LE(5, 68)
  bytes.writeBigUInt64LE(address, 80)
  bytes.writeBigUInt64LE(address, 88)
  bytes.writeBigUInt64LE(BigInt(headers + code.length), 96)
  bytes.writeBigUInt64LE(BigInt(headers + code.length), 104)
  bytes.writeBigUInt64LE(0x1000n, 112)
  return Buffer.concat([bytes, code])
}
