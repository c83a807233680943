// Combines the answers of a zone's servers, so that one that is wrong, outdated or down doesn't decide.
import type { Failure } from './ask.ts'

/** One server's answer, or why there is none. */
export type Reply<T> = { server: string; value: T; failure: null } | { server: string; value: null; failure: Failure }

export type Agreement<T> =
  | { kind: 'agreed'; value: T }
  /** Too many answers differ. */
  | { kind: 'divided'; values: T[] }
  /** Too few servers answered. */
  | { kind: 'silent'; failures: Failure[] }

/**
 * Half of the queried servers must answer, and two thirds of the answers must agree. So one server of three can neither
 * create nor remove a proof, one of two makes it undecided, and a zone with one broken server of two still counts.
 */
export function agree<T>(replies: readonly Reply<T>[], sameness: (value: T) => string): Agreement<T> {
  const answers = replies.filter((reply) => reply.failure === null)
  if (answers.length === 0 || answers.length * 2 < replies.length) {
    return { kind: 'silent', failures: replies.flatMap(({ failure }) => failure ?? []) }
  }
  const groups = Map.groupBy(answers, ({ value }) => sameness(value))
  for (const group of groups.values()) {
    if (group.length * 3 >= answers.length * 2) return { kind: 'agreed', value: group[0]!.value }
  }
  return { kind: 'divided', values: [...groups.values()].map((group) => group[0]!.value) }
}
