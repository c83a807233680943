// The versions of Node that builds and servers can use.
import type { MountedProgram } from '../processes/command.ts'
import type { Program, Programs } from './programs.ts'

export const nodeMajors = ['20', '22', '24'] as const
export type NodeMajor = (typeof nodeMajors)[number]

/** The latest release of each major version at the time of writing. */
const releases: Record<NodeMajor, string> = { '20': '20.20.2', '22': '22.23.3', '24': '24.21.0' }

const [ownMajor] = process.versions.node.split('.') as [string]

/** The default for commands: the Node that runs Berth, or null if that isn't one of these. */
export const hostNode: NodeMajor | null = nodeMajors.find((major) => major === ownMajor) ?? null

/** The npm packages of Node and Bun need glibc, which Alpine lacks. */
export function hasGlibc(): boolean {
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined
  return process.platform === 'linux' && report?.header?.glibcVersionRuntime !== undefined
}

export function nodeProgram(major: NodeMajor): Program {
  const name = `node-linux-${process.arch}`
  return { package: name, version: releases[major], bin: { node: 'bin/node' }, pinned: true }
}

/** Mounts nothing if the machine's own Node is the requested one. */
export async function openNode(programs: Programs, major: NodeMajor | undefined): Promise<MountedProgram[]> {
  if (major === undefined || major === hostNode || !hasGlibc()) return []
  return [await programs.open(nodeProgram(major))]
}
