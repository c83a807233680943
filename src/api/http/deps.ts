// Dependencies of the API: created once in roles/api.ts or by a test and passed down, never singletons.
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Notifications } from '../../platform/database/notifications.ts'
import type { Repositories } from '../../platform/git/repositories.ts'
import type { Urls } from '../../platform/http/urls.ts'
import type { DrainSignal } from '../../platform/observe/draining.ts'
import type { Health } from '../../platform/observe/health.ts'
import type { PasswordHasher } from '../../platform/secrets/password-hash.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import type { Discover, ZoneWork } from '../../services/dns/index.ts'
import type { SharedLimits } from '../../services/limits/index.ts'
import type { LoadMeter } from '../../services/nodes/index.ts'
import type { TokenDirectory } from '../../services/tokens/index.ts'

export type Deps = {
  config: Config
  urls: Urls
  db: Database
  notifications: Notifications
  health: Health
  vault: Vault
  repositories: Repositories
  /** Where uploads go. */
  artifacts: Artifacts
  tokenDirectory: TokenDirectory
  zoneWork: ZoneWork
  /** Asks the present nameservers of a domain. */
  discover: Discover
  /** Limits that are shared with other API processes; default: this one counts alone. */
  sharedLimits?: SharedLimits
  /** Default: slow, as it has to be. */
  passwordHasher?: PasswordHasher
  log: Logger
  /** Aborted while the process drains: it still serves, but keeps no connection. */
  draining?: DrainSignal
  /** Of the node that this API is part of. */
  load?: LoadMeter
  /** Where the console was built; default: dist/dashboard. */
  consoleDirectory?: string
  /** The built command line; default: the one of dist/. */
  commandLineFile?: string
  /** How long the event loop may lag before requests are shed; see `shedLoad`. */
  maxLoopDelayMs?: number
  /** The metrics of all roles; default: a registry of its own. */
  registry?: Registry
}
