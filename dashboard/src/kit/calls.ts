// A call of the API, and what has been read by one.

export type Call<T> = {
  /** Tells calls apart. */
  key: string
  /** What one types in a shell; null: it is for browsers alone. */
  curl: string | null
  send(signal?: AbortSignal): Promise<T>
  /** The same list from there on. */
  from(cursor: string): Call<T>
}

export type Query<T> = {
  readonly data: T | undefined
  readonly error: unknown
  readonly loading: boolean
  /** The call that it shows, for Panel's curl. */
  readonly call: Call<T> | null
  refetch(): void
  /** Shows something else until it is read again; returns what undoes it. */
  set(data: T): () => void
}
