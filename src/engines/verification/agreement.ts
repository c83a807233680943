// What several servers of one zone say together: one that lies, lags or is away must not decide.
import type { Trouble } from './ask.ts'

/** What one server said, or why it could not be asked. */
export type Reply<T> = { server: string; value: T; trouble: null } | { server: string; value: null; trouble: Trouble }

export type Agreement<T> =
  | { kind: 'agreed'; value: T }
  /** Too many contradict each other. */
  | { kind: 'divided'; values: T[] }
  /** Too few could be asked. */
  | { kind: 'silent'; troubles: Trouble[] }

/**
 * Half of the servers that were asked must answer, and two thirds of the answers must be the same. So one of three can
 * neither make nor take a proof, one of two makes it undecided, and a zone with one broken server of two still counts.
 */
export function agree<T>(replies: readonly Reply<T>[], sameness: (value: T) => string): Agreement<T> {
  const answers = replies.filter((reply) => reply.trouble === null)
  if (answers.length === 0 || answers.length * 2 < replies.length) {
    return { kind: 'silent', troubles: replies.flatMap(({ trouble }) => trouble ?? []) }
  }
  const groups = Map.groupBy(answers, ({ value }) => sameness(value))
  for (const group of groups.values()) {
    if (group.length * 3 >= answers.length * 2) return { kind: 'agreed', value: group[0]!.value }
  }
  return { kind: 'divided', values: [...groups.values()].map((group) => group[0]!.value) }
}
