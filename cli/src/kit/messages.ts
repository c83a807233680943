// Streams the log of a deployment, and waits for its build.

import { backoffMs, pause, streamType } from '../../../sdk/src/retry.ts'
import type { Deployment } from '../../../sdk/src/types.ts'
import type { Context } from './context.ts'
import { exitCodes, Failure } from './failures.ts'
import type { ApiResponse } from './wire.ts'

export type Uploading = Deployment & { uploads?: { missing: string[] } }
export type Line = { seq: number; stream: string; step: string; text: string }

// The server sends a keep-alive every 15 s.
const silenceMs = 45_000

/** Ends with the build. After a lost connection, resumes after the last line. */
export async function* followLog({ send, signal }: Context, id: string): AsyncGenerator<Line> {
  let last: string | null = null
  let wasOpen = false
  for (let failures = 0; ; ) {
    try {
      const headers = { accept: streamType, ...(last !== null && { 'last-event-id': last }) }
      const { stream } = await send('GET', `/api/deployments/${encodeURIComponent(id)}/logs`, { headers, signal })
      wasOpen = true
      stream.setTimeout(silenceMs, () => stream.destroy(new Error('The log stream timed out.')))
      for await (const message of messagesOf(stream)) {
        failures = 0
        if (message.event === 'end') return
        last = message.id ?? last
        yield lineOf(message.data)
      }
    } catch (error) {
      const { status = 500 } = error as { status?: number }
      if (signal.aborted || !wasOpen || error instanceof Failure || (status < 500 && status !== 429)) throw error
    }
    await pause(backoffMs(++failures), signal)
  }
}

function lineOf(data: string): Line {
  try {
    const line = JSON.parse(data)
    if (typeof line.text === 'string') return line
  } catch {}
  throw new Failure(exitCodes.unreachable, 'The server sent a malformed log message.')
}

type Message = { id: string | null; event: string; data: string }

const maxBytes = 1 << 20

/** Server-sent events: lines of `name: value`, with an empty line after each message. */
export async function* messagesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Message> {
  // Chunks of an incomplete message. They are joined once, when it is complete.
  let parts: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream) {
    for (let from = 0; from < chunk.length; ) {
      const end = endOf(chunk, from, parts.at(-1)?.at(-1))
      const part = chunk.subarray(from, end ?? chunk.length)
      parts.push(part)
      bytes += part.length
      from += part.length
      if (bytes > maxBytes)
        throw new Failure(exitCodes.unreachable, 'The server sent a log message of more than 1 MiB.')
      if (end === null) break
      const message = messageOf(Buffer.concat(parts).toString('utf8'))
      parts = []
      bytes = 0
      if (message.data !== '') yield message
    }
  }
}

const newline = 10

/** The offset after the empty line, which may start with the last byte of the previous chunk. */
function endOf(chunk: Buffer, from: number, before: number | undefined): number | null {
  if (before === newline && chunk[from] === newline) return from + 1
  const at = chunk.indexOf('\n\n', from)
  return at < 0 ? null : at + 2
}

function messageOf(lines: string): Message {
  const message: Message = { id: null, event: 'message', data: '' }
  for (const line of lines.split('\n')) {
    const [, name, text = ''] = /^([^:]+): ?(.*)$/s.exec(line) ?? []
    if (name === 'data') message.data += message.data === '' ? text : `\n${text}`
    else if (name === 'id' || name === 'event') message[name] = text
  }
  return message
}

/** Long-polls until the build has ended. */
export async function waitUntilBuilt({ send, signal }: Context, id: string): Promise<Deployment> {
  for (let seconds = 60; ; ) {
    const startedMs = Date.now()
    const path = `/api/deployments/${encodeURIComponent(id)}${seconds > 0 ? `?wait=${seconds}` : ''}`
    const response = await send('GET', path, { signal }).catch((error) => {
      // The account is at its limit of waiting requests.
      if (error.status !== 429 || seconds === 0) throw error
      return null
    })
    const found = response && (await deploymentOf(response))
    if (found && found.state !== 'BUILDING') return found
    seconds = response ? 60 : 0
    await pause(Math.max(0, 1_000 - (Date.now() - startedMs)), signal)
  }
}

/** The deployment in a response; throws if there is none. */
export async function deploymentOf(response: ApiResponse): Promise<Uploading> {
  const body = await response.json()
  const isText = (it: unknown) => typeof it === 'string' && it !== ''
  const { missing } = body.uploads ?? { missing: [] }
  if (isText(body.id) && isText(body.state) && Array.isArray(missing) && missing.every(isText)) return body
  throw new Failure(exitCodes.unreachable, `The server responded with ${response.status}, but not with a deployment.`)
}
