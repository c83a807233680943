// Wrong set-ups: each must end at once, in one sentence that names what to add.
import assert from 'node:assert/strict'
import type { Service } from './compose.ts'
import { type Machine, runToEnd } from './podman.ts'

type Wrong = { what: string; change(worker: Service): Partial<Service>; says: RegExp[]; not?: RegExp[] }

const without = (worker: Service, option: RegExp) => worker.security_opt!.filter((one) => !option.test(one))

const wrongs: Wrong[] = [
  {
    what: 'no security options at all',
    change: () => ({ security_opt: [], devices: [] }),
    says: [/seccomp=deploy\/seccomp\.json/, /systempaths=unconfined/],
  },
  {
    what: 'without the seccomp profile',
    change: (worker) => ({ security_opt: without(worker, /^seccomp=/) }),
    says: [/seccomp=deploy\/seccomp\.json/],
    not: [/systempaths/],
  },
  {
    what: 'with /proc masked',
    change: (worker) => ({ security_opt: without(worker, /^systempaths=/) }),
    says: [/systempaths=unconfined/],
    not: [/seccomp=/],
  },
  { what: 'as root without capabilities', change: () => ({ user: 'root' }), says: [/user: node/] },
]

export async function tryWrongSetups(machine: Machine, say: (line: string) => void): Promise<void> {
  const worker = machine.compose.services.worker!
  for (const { what, change, says, not = [] } of wrongs) {
    const { code, output } = await runToEnd(machine, 'wrong', { ...worker, ...change(worker) })
    const lines = output.split('\n').filter((line) => line.startsWith('berth: '))
    say(`${what}: ${lines.join(' ') || output}`)
    assert.notEqual(code, 0, what)
    assert.equal(lines.length, 1, output)
    for (const pattern of says) assert.match(lines[0]!, pattern)
    for (const pattern of not) assert.doesNotMatch(lines[0]!, pattern)
    // One line, and no stack.
    assert.doesNotMatch(output, /^\s+at /m)
  }
}
