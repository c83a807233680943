// What a starter is, and what several of them share.

export type Starter = {
  name: string
  /** Run in an empty directory; makes the folder `app`. */
  make?: string
  /** Written into `app`. */
  files?: Record<string, string>
  /** Run in `app` afterwards, for example to write a lockfile. */
  after?: string
  rootDirectory?: string
}

export const json = (value: object) => JSON.stringify(value, null, 2)
export const listen = 'process.env.PORT ?? 3000'
