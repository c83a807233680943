// What the API is handed at start: made once in main.ts or by a test, passed down, never imported as a singleton.
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from './config.ts'
import type { Database } from './db.ts'
import type { Notifications } from './notifications.ts'
import type { Repositories } from './repositories.ts'
import type { Vault } from './secrets.ts'
import type { TokenDirectory } from './services/token-directory.ts'

export type Deps = {
  config: Config
  db: Database
  notifications: Notifications
  vault: Vault
  repositories: Repositories
  tokenDirectory: TokenDirectory
  log: Logger
  /** Where the metrics of all roles come together; left out, the API keeps its own. */
  registry?: Registry
}
