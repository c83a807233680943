// The API's dependencies, created once in roles/api.ts or by a test and passed down, never singletons.
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
  /** Where uploads are stored. */
  artifacts: Artifacts
  tokenDirectory: TokenDirectory
  zoneWork: ZoneWork
  /** Queries a domain's current nameservers. */
  discover: Discover
  /** Limits shared with other API processes; default: this process counts alone. */
  sharedLimits?: SharedLimits
  /** Default: slow, as it should be. */
  passwordHasher?: PasswordHasher
  log: Logger
  /** Aborted while the process drains: it still serves, but keeps no connection alive. */
  draining?: DrainSignal
  /** The load of this API's node. */
  load?: LoadMeter
  /** The built console; default: dist/dashboard. */
  consoleDirectory?: string
  /** The built CLI; default: the one in dist/. */
  commandLineFile?: string
  /** How long the event loop may lag before requests are shed; see `shedLoad`. */
  maxLoopDelayMs?: number
  /** The metrics of all roles; default: a new registry. */
  registry?: Registry
}
