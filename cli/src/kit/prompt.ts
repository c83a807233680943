// Questions to a person. Without a terminal, the error names the option to give instead.
import { usage } from './failures.ts'

export const canAsk = () => process.stdin.isTTY === true && process.stderr.isTTY === true

/** `instead`: the option to give without a terminal. */
export function ask(question: string, instead: string, signal: AbortSignal): Promise<string> {
  return answerTo(question, instead, signal, false)
}

/** The same for secrets, without echo. */
export function askUnseen(question: string, instead: string, signal: AbortSignal): Promise<string> {
  return answerTo(question, instead, signal, true)
}

async function answerTo(question: string, instead: string, signal: AbortSignal, unseen: boolean): Promise<string> {
  if (!canAsk()) throw usage(`We can't ask "${question}" without a terminal. Give ${instead}.`)
  const { createInterface } = await import('node:readline/promises')
  const { Writable } = await import('node:stream')
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: unseen ? nowhere : process.stderr, terminal: true })
  // The terminal's own echo is off only from here on.
  if (unseen) process.stderr.write(`${question} `)
  // Readline gets Ctrl-C instead of the process.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const left = new Promise<never>((_, reject) => {
    lines.once('close', () => reject(usage('There was no answer.')))
  })
  try {
    return (await Promise.race([lines.question(unseen ? '' : `${question} `, { signal }), left])).trim()
  } finally {
    left.catch(() => {})
    if (unseen) process.stderr.write('\n')
    lines.close()
  }
}

/** Throws unless the person agrees or --yes was given. */
export async function confirm(question: string, yes: boolean | undefined, signal: AbortSignal): Promise<void> {
  if (yes) return
  const answer = await ask(`${question} [y/N]`, '--yes', signal)
  if (!/^y(es)?$/i.test(answer)) throw usage('Nothing changed.')
}

/** All of stdin. */
export async function readStdin(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
