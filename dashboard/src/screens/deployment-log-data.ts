// The live log of a deployment: a stream that resumes after the last line, and the times of each step.
import { batch, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { follow } from '../../../sdk/src/streams.ts'
import { BerthError, berth, type LogRow, type Schemas } from '../kit/index.ts'

export type LogState = 'connecting' | 'live' | 'resuming' | 'ended' | 'failed'
export type StepTimes = ReadonlyMap<string, { from: number; to: number }>

// Lines arrive in bursts; each burst is rendered once.
const burstMs = 60

function createLog(id: string) {
  const rows = signal<readonly LogRow[]>([])
  const state = signal<LogState>('connecting')
  const failure = signal<unknown>(null)
  const steps = signal<StepTimes>(new Map())
  let pending: Schemas['LogLine'][] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let stop = new AbortController()
  let last: string | undefined

  function flush(): void {
    timer = undefined
    const lines = pending
    pending = []
    if (lines.length === 0) return
    const times = new Map(steps.peek())
    for (const { step, at } of lines) {
      const ms = Date.parse(at)
      times.set(step, { from: times.get(step)?.from ?? ms, to: ms })
    }
    batch(() => {
      steps.value = times
      rows.value = rows
        .peek()
        .concat(lines.map(({ seq, at, step, stream, text }) => ({ id: seq, at, step, text, bad: stream === 'stderr' })))
    })
  }

  async function run(signal: AbortSignal): Promise<void> {
    const open = async (init: object) => {
      state.value = last === undefined ? 'connecting' : 'resuming'
      const { data, error, response } = await berth.raw.GET('/deployments/{id}/logs', {
        params: { path: { id } },
        parseAs: 'stream',
        ...init,
      })
      if (!response.ok) throw new BerthError(response, error)
      state.value = 'live'
      return data as unknown as ReadableStream
    }
    try {
      for await (const message of follow(open, { lastEventId: last, signal })) {
        if (message.event === 'end') {
          flush()
          state.value = 'ended'
          return
        }
        last = message.id ?? last
        pending.push(JSON.parse(message.data))
        timer ??= setTimeout(flush, burstMs)
      }
    } catch (error) {
      if (signal.aborted) return
      flush()
      batch(() => {
        failure.value = error
        state.value = 'failed'
      })
    }
  }

  return {
    rows,
    state,
    failure,
    steps,
    /** Resumes after the last line; a server may have written more since. */
    start() {
      stop.abort()
      stop = new AbortController()
      failure.value = null
      void run(stop.signal)
    },
    stop() {
      clearTimeout(timer)
      stop.abort()
    },
  }
}

export type DeploymentLog = ReturnType<typeof createLog>

export function useLog(id: string): DeploymentLog {
  const log = useMemo(() => createLog(id), [id])
  useEffect(() => {
    log.start()
    return log.stop
  }, [log])
  return log
}
