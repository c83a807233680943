// Prompts. Without a terminal, the error names the option to use instead.
import { usage } from './failures.ts'

export const canAsk = () => process.stdin.isTTY === true && process.stderr.isTTY === true

/** `instead`: what to give without a terminal. */
export function ask(question: string, instead: string, signal: AbortSignal): Promise<string> {
  return prompt(question, instead, signal, false)
}

/** The same for secrets, without echo. */
export function askSecret(question: string, instead: string, signal: AbortSignal): Promise<string> {
  return prompt(question, instead, signal, true)
}

async function prompt(question: string, instead: string, signal: AbortSignal, isSecret: boolean): Promise<string> {
  if (!canAsk()) throw usage(`We can't ask "${question}" without a terminal. Give ${instead}.`)
  const { createInterface } = await import('node:readline/promises')
  const { Writable } = await import('node:stream')
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: isSecret ? nowhere : process.stderr, terminal: true })
  // Readline has turned off the terminal's echo.
  if (isSecret) process.stderr.write(`${question} `)
  // Readline swallows Ctrl-C.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const closed = new Promise<never>((_, reject) => {
    lines.once('close', () => reject(usage('No answer was given.')))
  })
  try {
    return (await Promise.race([lines.question(isSecret ? '' : `${question} `, { signal }), closed])).trim()
  } finally {
    closed.catch(() => {})
    if (isSecret) process.stderr.write('\n')
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
