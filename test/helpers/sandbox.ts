// One sandbox of each kind for all files of a test process, because opening one runs it twice.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { askPackageRegistry } from '../../src/sandbox/network/hosts.ts'
import { openPrograms, type Programs } from '../../src/sandbox/programs/programs.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'

type Mode = Parameters<typeof createSandbox>[0]

const open = new Map<Mode, Promise<Sandbox>>()

/** Closing it does nothing: its remains are removed when the process exits, as after any exit of a server. */
export async function sharedSandbox(mode: Mode = 'auto'): Promise<Sandbox> {
  const opening = open.get(mode) ?? createSandbox(mode, { searchPath: process.env.PATH ?? '' })
  open.set(mode, opening)
  return { ...(await opening), close: async () => {} }
}

let registry: Promise<string> | undefined

/** The output of npm, which has to be started for it. */
export function sharedPackageRegistry(): Promise<string> {
  registry ??= askPackageRegistry(pino({ level: 'silent' }))
  return registry
}

let programs: Programs | undefined

/** Fetches nothing until a project requests another Node or package manager. */
export function sharedPrograms(): Programs {
  if (programs) return programs
  const directory = mkdtempSync(join(tmpdir(), 'berth-programs-'))
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  programs = openPrograms({ directory, maxMb: 1024, keepMs: 60_000 })
  return programs
}
