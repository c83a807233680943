// Package managers as programs for sandboxes.
import { existsSync, readFileSync } from 'node:fs'
import { hasGlibc } from './node-versions.ts'
import type { Program } from './programs.ts'

export type ManagerVersion = { name: 'npm' | 'pnpm' | 'yarn' | 'bun'; version: string }

/** Yarn 2 and later ("Berry") is a different program. */
export const isBerry = (version: string | null) => Number.parseInt(version ?? '', 10) >= 2

export function managerProgram({ name, version }: ManagerVersion): Program {
  if (name === 'bun') return { package: bunPackage(), version, bin: { bun: 'bin/bun', bunx: 'bin/bun' } }
  return { package: name === 'yarn' && isBerry(version) ? '@yarnpkg/cli-dist' : name, version }
}

function bunPackage(): string {
  const arch = process.arch === 'arm64' ? 'aarch64' : process.arch
  const cpu = existsSync('/proc/cpuinfo') ? readFileSync('/proc/cpuinfo', 'utf8') : ''
  const old = process.arch === 'x64' && !/\bavx2\b/.test(cpu)
  return `@oven/bun-linux-${arch}${hasGlibc() ? '' : '-musl'}${old ? '-baseline' : ''}`
}
