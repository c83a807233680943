// Questions to a person. Without a terminal nothing is asked: the option that answers it is named.
import { usage } from './failures.ts'

export const canAsk = () => process.stdin.isTTY === true && process.stderr.isTTY === true

/** `instead` is the option to give where nobody can be asked. */
export function ask(question: string, instead: string, signal: AbortSignal): Promise<string> {
  return answerTo(question, instead, signal, false)
}

/** The same for secrets: what is typed is not shown. */
export function askUnseen(question: string, instead: string, signal: AbortSignal): Promise<string> {
  return answerTo(question, instead, signal, true)
}

async function answerTo(question: string, instead: string, signal: AbortSignal, unseen: boolean): Promise<string> {
  if (!canAsk())
    throw usage(`${question.replace(/\??$/, '')}: give ${instead}, because there is no terminal to ask at.`)
  const { createInterface } = await import('node:readline/promises')
  const { Writable } = await import('node:stream')
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: unseen ? nowhere : process.stderr, terminal: true })
  // Only now does the terminal not show by itself what is typed.
  if (unseen) process.stderr.write(`${question} `)
  // The terminal tells Ctrl-C to whoever reads from it, and to nobody else.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const left = new Promise<never>((_, reject) => {
    lines.once('close', () => reject(usage('Nothing was answered.')))
  })
  try {
    return (await Promise.race([lines.question(unseen ? '' : `${question} `, { signal }), left])).trim()
  } finally {
    left.catch(() => {})
    if (unseen) process.stderr.write('\n')
    lines.close()
  }
}

/** Throws unless the person agrees, or has agreed by --yes. */
export async function confirm(question: string, yes: boolean | undefined, signal: AbortSignal): Promise<void> {
  if (yes) return
  const answer = await ask(`${question} [y/N]`, '--yes', signal)
  if (!/^y(es)?$/i.test(answer)) throw usage('Nothing was changed.')
}

/** What comes on stdin, to its end. */
export async function readStdin(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
