// Work in proportion to its size, held by what it costs and not by how long it takes.
import { expect } from 'vitest'

// By the processor's time, which other programs do not lengthen, and as a ratio: eight times the text may take eight times
// as long. Quadratic time would take 64 times.
export function takesLinearTime(sizes: { small: number; large: number }, work: (size: number) => void): void {
  const costOf = (size: number) => {
    const start = process.cpuUsage()
    work(size)
    const { user, system } = process.cpuUsage(start)
    return (user + system) / 1000
  }
  const least = (size: number, tries: number) => Math.min(...Array.from({ length: tries }, () => costOf(size)))
  const growth = sizes.large / sizes.small
  const bound = Math.max(20, least(sizes.small, 2)) * growth * 3
  const cost = costOf(sizes.large)
  // Once more before it counts: a neighbour on the same processor costs time too.
  expect(cost < bound ? cost : costOf(sizes.large)).toBeLessThan(bound)
}
