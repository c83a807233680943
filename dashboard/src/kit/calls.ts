// The types of an API call and of a query, which holds its result.

export type Call<T> = {
  /** Identifies the call. */
  key: string
  /** The shell command; null if only browsers can send the call. */
  curl: string | null
  send(signal?: AbortSignal): Promise<T>
  /** The next page of the same list. */
  from(cursor: string): Call<T>
}

export type Query<T> = {
  readonly data: T | undefined
  readonly error: unknown
  readonly loading: boolean
  /** For the curl of Panel. */
  readonly call: Call<T> | null
  refetch(): void
  /** Shows other data until the next load; returns an undo function. */
  set(data: T): () => void
}
