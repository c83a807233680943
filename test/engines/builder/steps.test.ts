import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSteps, stepsArgv } from '../../../src/engines/builder/run/steps.ts'

/** What is heard of each command when the shell's output comes in pieces of that many octets. */
function run(commands: string[], pieceOctets: number): { heard: string[]; status: number | null } {
  const heard = ['']
  const steps = createSteps(
    '',
    commands,
    () => heard.push(''),
    (chunk) => {
      heard.push(heard.pop()! + chunk)
    },
  )
  const [program, ...rest] = stepsArgv
  const { stdout, status } = spawnSync(program!, rest, { input: steps.script })
  for (let at = 0; at < stdout.length; at += pieceOctets) steps.receive(stdout.subarray(at, at + pieceOctets))
  steps.end()
  return { heard, status }
}

test.each([1, 2, 7, 33, 1_000])('each command has its own output, in pieces of %d octets', (octets) => {
  const { heard, status } = run(["printf 'a\\036b'", 'echo "it\'s $0"; true', 'printf "last\\036"'], octets)
  expect(heard).toEqual(['a\x1eb', "it's /bin/sh\n", 'last\x1e'])
  expect(status).toBe(0)
})

test('a command that fails is the last, and its status is that of all', () => {
  expect(run(['echo one', 'echo two; exit 7', 'echo three'], 5)).toEqual({ heard: ['one\n', 'two\n'], status: 7 })
})

test('one command alone is run as it is', () => {
  expect(run(['exit 3'], 5)).toEqual({ heard: [''], status: 3 })
})

test('commands have nothing to read, and run in the directory', () => {
  const [program, ...rest] = stepsArgv
  const { script } = createSteps(
    "it's a place",
    ['cat; basename "$PWD"'],
    () => {},
    () => {},
  )
  const cwd = mkdtempSync(join(tmpdir(), 'berth-steps-'))
  mkdirSync(join(cwd, "it's a place"))
  try {
    expect(spawnSync(program!, rest, { cwd, input: script }).stdout.toString()).toBe("it's a place\n")
  } finally {
    rmSync(cwd, { recursive: true })
  }
})

test('a shell that never gets its script runs nothing and fails', () => {
  const [program, ...rest] = stepsArgv
  expect(spawnSync(program!, rest, { input: '' }).status).not.toBe(0)
})
