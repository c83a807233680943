// A thread of the nameserver that starts when the test lets it, and fails when the test wants it to.
import { BroadcastChannel } from 'node:worker_threads'

export const channelName = 'berth-held-threads'

const channel = new BroadcastChannel(channelName)
await new Promise<void>((resolve) => {
  channel.onmessage = (event) => {
    const { data } = event as { data: string }
    if (data === 'start') resolve()
    if (data === 'fail') process.exit(1)
  }
})
await import('../../../src/engines/nameserver/workers/worker.ts')
