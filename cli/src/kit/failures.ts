// Errors as exit codes and as text. docs/cli.md lists the codes.
import { InvalidResponse } from '../../../sdk/src/errors.ts'
import { version } from './built-in.ts'
import { clean, cleanJson } from './text.ts'

export const exitCodes = {
  ok: 0,
  /** A deployment failed, or a check came out negative. */
  failed: 1,
  usage: 2,
  notSignedIn: 3,
  refused: 4,
  notFound: 5,
  invalid: 6,
  unreachable: 7,
  /** Production is pinned to another deployment, so this one doesn't take over. */
  pinned: 8,
  interrupted: 130,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** An expected error: one sentence, without a stack. */
export class Failure extends Error {
  readonly exitCode: ExitCode
  /** What to do next, on its own line. */
  readonly hint: string | undefined

  constructor(exitCode: ExitCode, message: string, hint?: string) {
    super(message)
    this.exitCode = exitCode
    this.hint = hint
  }
}

export const usage = (message: string, hint?: string) => new Failure(exitCodes.usage, message, hint)

type Problem = { code: string; detail: string; errors?: unknown; requestId?: unknown }
type Refusal = { status: number; problem: Problem | null }

/** An error response of the API, by its shape: importing its class would load the SDK. */
function refusalOf(error: unknown): Refusal | null {
  if (!(error instanceof Error) || error.name !== 'BerthError') return null
  const { status, problem } = error as unknown as { status: number; problem: unknown }
  return { status, problem: isProblem(problem) ? problem : null }
}

/** Whether a body is a problem of the API; a proxy's may be anything. */
export function isProblem(body: unknown): body is Problem {
  const { code, detail } = (body ?? {}) as Partial<Problem>
  return typeof code === 'string' && typeof detail === 'string'
}

type FieldProblem = { pointer: string; detail: string }

function fieldProblems({ errors }: Problem): FieldProblem[] {
  if (!Array.isArray(errors)) return []
  return errors.filter((one) => typeof one?.pointer === 'string' && typeof one.detail === 'string')
}

function isInterrupt(error: unknown): boolean {
  return error instanceof Error && error.name === 'Interrupted'
}

export function codeOf(error: unknown): ExitCode {
  if (error instanceof Failure) return error.exitCode
  if (isInterrupt(error)) return exitCodes.interrupted
  if (error instanceof InvalidResponse) return exitCodes.unreachable
  const refusal = refusalOf(error)
  if (refusal) return codeOfStatus(refusal.status)
  return isUnreachable(error) ? exitCodes.unreachable : exitCodes.failed
}

export function codeOfStatus(status: number): ExitCode {
  if (status < 400) return exitCodes.ok
  if (status === 401) return exitCodes.notSignedIn
  if (status === 402 || status === 403 || status === 429) return exitCodes.refused
  if (status === 404 || status === 410) return exitCodes.notFound
  return status < 500 ? exitCodes.invalid : exitCodes.unreachable
}

// Errors of fetch, sockets and TLS.
function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error.name === 'TimeoutError' || error.message === 'fetch failed' || error.message === 'terminated') return true
  const { code = '', syscall } = error as NodeJS.ErrnoException
  const remote = ['connect', 'getaddrinfo', 'CONNECT']
  return (
    (syscall !== undefined && remote.includes(syscall)) ||
    /^(ECONN|ENOTFOUND|EAI_|ETIMEDOUT|EHOST|ENET|HPE_|ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO)/.test(code)
  )
}

/** Writes an error to stderr; with --json, as the API's own problem. */
export function tell(error: unknown, asJson: boolean): void {
  const lines = asJson ? [cleanJson({ error: describe(error) })] : words(error)
  process.stderr.write(`${lines.join('\n')}\n`)
}

function describe(error: unknown): object {
  const problem = refusalOf(error)?.problem
  return problem ?? { code: nameOf(codeOf(error)), detail: messageOf(error) }
}

function nameOf(code: ExitCode): string {
  return Object.entries(exitCodes)
    .find(([, value]) => value === code)![0]
    .replace(/[A-Z]/g, (it) => `_${it.toLowerCase()}`)
}

function words(error: unknown): string[] {
  if (isInterrupt(error)) return ['Interrupted.']
  const refusal = refusalOf(error)
  if (!refusal?.problem) {
    const hint = error instanceof Failure && error.hint
    return [`Error: ${clean(messageOf(error))}`, ...(hint ? [clean(hint)] : [])]
  }
  const { code, detail, requestId } = refusal.problem
  return [
    `Error: ${clean(detail)} (${clean(code)})`,
    // With one bad field, the problem's detail is already the field's.
    ...fieldProblems(refusal.problem)
      .filter((one) => !detail.includes(one.detail))
      .map((one) => `  ${clean(one.pointer.replace(/^#\//, ''))}: ${clean(one.detail)}`),
    ...(code === 'route_not_found'
      ? [`The server does not support this. It may be older than this program (${version}).`]
      : []),
    ...(refusal.status === 401 ? ['Run `berth login`, or set BERTH_TOKEN.'] : []),
    ...(refusal.status >= 500 && requestId ? [`Request ${clean(requestId)}`] : []),
  ]
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (!isUnreachable(error)) return error.message
  const { message, code } = (error.cause instanceof Error ? error.cause : error) as NodeJS.ErrnoException
  // A name with several addresses yields an error for each, and none of its own.
  return `We couldn't reach the server: ${message || code}`
}
