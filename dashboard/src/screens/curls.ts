// Several commands in one panel: what it shows, and what its buttons do.
import type { Call } from '../kit/index.ts'

export function withCurls<T>(call: Call<T>, ...others: Call<unknown>[]): Call<T> {
  return { ...call, curl: [call, ...others].map(({ curl }) => curl ?? '').join('\n') }
}
