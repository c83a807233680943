// Chooses the version of Node.js by .nvmrc, .node-version or engines in package.json.
import { hostNode, nodeMajors } from '../../../sandbox/programs/node-versions.ts'
import type { NodeMajor } from './types.ts'
import type { Warning } from './warning.ts'

const supported: readonly NodeMajor[] = nodeMajors
const codeNames: Record<string, number> = { hydrogen: 18, iron: 20, jod: 22, krypton: 24 }
const maxRangeLength = 200

/** `range` is in the syntax of `engines`. */
export type NodeNeed = { name: string; range: string }

export type FoundNode = { node: NodeMajor; because: string[]; warnings: Warning[] }

/**
 * The first file in `declared` with a version decides. `requirements` of packages are met as far as that allows.
 */
export function chooseNode(
  declared: { file: string; text: string | null }[],
  host: NodeMajor = hostNode ?? '24',
  requirements: NodeNeed[] = [],
): FoundNode {
  for (const { file, text } of declared) {
    const range = firstLine(text)
    if (range === null) continue
    const matches = majorsOf(range)
    if (matches === null) continue
    const matching = supported.filter((major) => matches(Number(major)))
    if (matching.length > 0) {
      const { node, because } = chooseFrom(matching, host, requirements)
      return { node, because: [`${file} asks for Node.js ${range}.`, ...because], warnings: [] }
    }
    const nearest = nearestTo(matches)
    const message = `${file} asks for Node.js ${range}, which is unavailable: ${nearest} is used. Available: ${supported.join(', ')}.`
    return { node: nearest, because: [], warnings: [{ code: 'node_version_unsupported', message, file }] }
  }
  return { ...chooseFrom(supported, host, requirements), warnings: [] }
}

/** Prefers the machine's own version, else the newest. */
function chooseFrom(
  fitting: readonly NodeMajor[],
  host: NodeMajor,
  needs: NodeNeed[],
): Pick<FoundNode, 'node' | 'because'> {
  const own = fitting.includes(host) ? host : fitting.at(-1)!
  const isFor = (major: NodeMajor) => (need: NodeNeed) => majorsOf(need.range)?.(Number(major)) ?? true
  const missing = needs.find((need) => !isFor(own)(need))
  // Never an older one, because upper limits are mostly outdated.
  const node = missing && fitting.findLast((major) => Number(major) > Number(own) && needs.every(isFor(major)))
  return node ? { node, because: [`${missing.name} needs Node.js ${missing.range}.`] } : { node: own, because: [] }
}

function firstLine(text: string | null): string | null {
  const line = text
    ?.split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .find((line) => line !== '')
  // The text appears in messages.
  return line !== undefined && line.length <= maxRangeLength && /^[\w\s.*^~<>=|/-]+$/.test(line) ? line : null
}

/** The supported version nearest to the declared one. */
function nearestTo(suits: (major: number) => boolean): NodeMajor {
  const lowest = Number(supported[0])
  for (let major = lowest; major >= 0; major--) if (suits(major)) return supported[0]!
  for (const major of supported) if (suits(Number(major) + 1)) return major
  return supported.at(-1)!
}

/** A predicate for the major versions that a range allows; null if the range is invalid. */
function majorsOf(range: string): ((major: number) => boolean) | null {
  const alternatives = range.split('||').map((part) => alternativeOf(part.trim()))
  if (alternatives.some((one) => one === null)) return null
  return (major) => alternatives.some((one) => one!(major))
}

function alternativeOf(text: string): ((major: number) => boolean) | null {
  const name = /^lts\/(\w+)$/.exec(text)?.[1]?.toLowerCase()
  if (name !== undefined) return Object.hasOwn(codeNames, name) ? (major) => major === codeNames[name] : null
  if (/^(lts\/\*|lts|node|latest|stable|current|\*|x|)$/.test(text)) return () => true
  const span = /^v?(\d{1,4})[\d.x]*\s+-\s+v?(\d{1,4})[\d.x]*$/.exec(text)
  if (span) return (major) => major >= Number(span[1]) && major <= Number(span[2])
  const comparators = text
    .replace(/([<>=^~])\s+/g, '$1')
    .split(/\s+/)
    .map(comparatorOf)
  return comparators.some((one) => one === null) ? null : (major) => comparators.every((one) => one!(major))
}

function comparatorOf(text: string): ((major: number) => boolean) | null {
  const found = /^([<>]=?|[=^~])?v?(\d{1,4})((?:\.[\dx*]{1,6}){0,2})(?:-[\w.]+)?$/.exec(text)
  if (!found) return null
  const wanted = Number(found[2])
  const isWhole = !/[1-9]/.test(found[3]!)
  const isBare = found[3] === '' || /^(\.[x*])+$/.test(found[3]!)
  switch (found[1]) {
    case '>=':
      return (major) => major >= wanted
    case '>':
      return (major) => (isBare ? major > wanted : major >= wanted)
    case '<':
      return (major) => (isWhole ? major < wanted : major <= wanted)
    case '<=':
      return (major) => major <= wanted
    default:
      return (major) => major === wanted
  }
}
