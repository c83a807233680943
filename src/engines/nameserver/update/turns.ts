// Schedules work on zones: one piece at a time per zone, few at once in total, and a limited number waiting.

export type TurnLimits = { atOnce: number; waiting: number; waitingPerZone: number }

/** Runs the work when its turn comes; null if too much is waiting already. */
export type Turns = <T>(zone: string, work: () => Promise<T>) => Promise<T> | null

export function createTurns({ atOnce, waiting, waitingPerZone }: TurnLimits): Turns {
  /** Waiting and running work by zone, in the order of turns. The first of a zone may be running. */
  const queues = new Map<string, (() => Promise<void>)[]>()
  const running = new Set<string>()
  let count = 0

  function next(): void {
    for (const [zone, queue] of queues) {
      if (running.size >= atOnce) return
      if (running.has(zone)) continue
      running.add(zone)
      void queue[0]!().then(() => {
        running.delete(zone)
        count--
        queue.shift()
        // Moves the zone to the end, behind all others.
        queues.delete(zone)
        if (queue.length > 0) queues.set(zone, queue)
        next()
      })
    }
  }

  return (zone, work) => {
    const queue = queues.get(zone) ?? []
    if (count >= waiting || queue.length >= waitingPerZone) return null
    count++
    queues.set(zone, queue)
    return new Promise((resolve, reject) => {
      queue.push(() => work().then(resolve, reject))
      next()
    })
  }
}
