// Questions to a person. Without a terminal nothing is asked: the option that answers it is named.
import { usage } from './failures.ts'

export const canAsk = () => process.stdin.isTTY === true && process.stderr.isTTY === true

/** `instead` is the option to give where nobody can be asked. */
export async function ask(question: string, instead: string, signal: AbortSignal): Promise<string> {
  if (!canAsk())
    throw usage(`${question.replace(/\??$/, '')}: give ${instead}, because there is no terminal to ask at.`)
  const { createInterface } = await import('node:readline/promises')
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  // The terminal tells Ctrl-C to whoever reads from it, and to nobody else.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const left = new Promise<never>((_, reject) => {
    lines.once('close', () => reject(usage('Nothing was answered.')))
  })
  try {
    return (await Promise.race([lines.question(`${question} `, { signal }), left])).trim()
  } finally {
    left.catch(() => {})
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
