// Converts errors to exit codes and messages. docs/cli.md lists the codes.
import { InvalidResponse } from '../../../sdk/src/errors.ts'
import { version } from './built-in.ts'
import { clean, cleanJson } from './text.ts'

export const exitCodes = {
  ok: 0,
  /** A deployment or a check failed. */
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

/** An expected error, printed without a stack. */
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
type ApiError = { status: number; problem: Problem | null }

/** An error response of the API, by its shape: importing its class would load the SDK. */
function apiErrorOf(error: unknown): ApiError | null {
  if (!(error instanceof Error) || error.name !== 'BerthError') return null
  const { status, problem } = error as unknown as { status: number; problem: unknown }
  return { status, problem: isProblem(problem) ? problem : null }
}

/** Whether a body is a problem of the API; a proxy may send anything. */
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

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof Failure) return error.exitCode
  if (isInterrupt(error)) return exitCodes.interrupted
  if (error instanceof InvalidResponse) return exitCodes.unreachable
  const apiError = apiErrorOf(error)
  if (apiError) return exitCodeOfStatus(apiError.status)
  return isUnreachable(error) ? exitCodes.unreachable : exitCodes.failed
}

export function exitCodeOfStatus(status: number): ExitCode {
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

/** Prints an error to stderr; with --json, as a problem of the API. */
export function printError(error: unknown, asJson: boolean): void {
  const lines = asJson ? [cleanJson({ error: jsonOf(error) })] : linesOf(error)
  process.stderr.write(`${lines.join('\n')}\n`)
}

function jsonOf(error: unknown): object {
  const problem = apiErrorOf(error)?.problem
  return problem ?? { code: nameOf(exitCodeOf(error)), detail: messageOf(error) }
}

function nameOf(code: ExitCode): string {
  return Object.entries(exitCodes)
    .find(([, value]) => value === code)![0]
    .replace(/[A-Z]/g, (it) => `_${it.toLowerCase()}`)
}

function linesOf(error: unknown): string[] {
  if (isInterrupt(error)) return ['Interrupted.']
  const apiError = apiErrorOf(error)
  if (!apiError?.problem) {
    const hint = error instanceof Failure && error.hint
    return [`Error: ${clean(messageOf(error))}`, ...(hint ? [clean(hint)] : [])]
  }
  const { code, detail, requestId } = apiError.problem
  return [
    `Error: ${clean(detail)} (${clean(code)})`,
    // With one bad field, the problem's detail is the field's.
    ...fieldProblems(apiError.problem)
      .filter((one) => !detail.includes(one.detail))
      .map((one) => `  ${clean(one.pointer.replace(/^#\//, ''))}: ${clean(one.detail)}`),
    ...(code === 'route_not_found'
      ? [`The server does not support this. It may be older than this program (${version}).`]
      : []),
    ...(apiError.status === 401 ? ['Run `berth login`, or set BERTH_TOKEN.'] : []),
    ...(apiError.status >= 500 && requestId ? [`Request ${clean(requestId)}`] : []),
  ]
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (!isUnreachable(error)) return error.message
  const { message, code } = (error.cause instanceof Error ? error.cause : error) as NodeJS.ErrnoException
  // A host with several addresses yields an error for each, and an empty message.
  return `We couldn't reach the server: ${message || code}`
}
