// The settings of a process; no other file reads the environment.
import { existsSync } from 'node:fs'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { apiSettings, apiVariables } from './config/api.ts'
import { artifactSettings, artifactVariables } from './config/artifacts.ts'
import { buildSettings, buildVariables } from './config/builds.ts'
import { certificateSettings, certificateVariables } from './config/certificates.ts'
import { databaseSettings, databaseVariables } from './config/database.ts'
import { edgeSettings, edgeVariables } from './config/edge.ts'
import { limitSettings, limitVariables } from './config/limits.ts'
import { mailSettings, mailVariables } from './config/mail.ts'
import { nameserverSettings, nameserverVariables } from './config/nameserver.ts'
import { nodeSettings, nodeVariables } from './config/node.ts'
import { oidcSettings, oidcVariables } from './config/oidc.ts'
import { productionFaults, productionVariables } from './config/production.ts'
import { retentionSettings, retentionVariables } from './config/retention.ts'
import { secretSettings, secretVariables } from './config/secrets.ts'
import { ConfigError } from './config/variables.ts'

export { workerCount } from './config/node.ts'
export { ConfigError } from './config/variables.ts'

const Environment = Type.Object({
  ...limitVariables,
  ...productionVariables,
  ...databaseVariables,
  ...apiVariables,
  ...edgeVariables,
  ...nameserverVariables,
  ...certificateVariables,
  ...artifactVariables,
  ...buildVariables,
  ...retentionVariables,
  ...secretVariables,
  ...mailVariables,
  ...oidcVariables,
  ...nodeVariables,
  WEBHOOK_ALLOW_PRIVATE: Type.Boolean({ default: false }),
})

/** Every name that is read from the environment. */
export const variableNames: readonly string[] = Object.keys(Environment.properties)

export type Config = ReturnType<typeof loadConfig>

/** Throws a ConfigError with one sentence per mistake. */
export function loadConfig(source: Record<string, string | undefined>) {
  const env = parse(source)
  const faults: string[] = []
  const refuse = (sentence: string) => void faults.push(sentence)
  const production = env.NODE_ENV === 'production'
  const api = apiSettings(env, refuse)
  const config = {
    production,
    ...databaseSettings(env),
    ...api,
    ...edgeSettings(env, refuse),
    ...nameserverSettings(env, refuse),
    ...certificateSettings(env, refuse),
    ...artifactSettings(env, refuse),
    ...buildSettings(env, refuse),
    ...retentionSettings(env),
    ...secretSettings(env, refuse),
    ...limitSettings(env),
    ...mailSettings(env, api.baseUrl, refuse),
    ...oidcSettings(env, production, refuse),
    ...nodeSettings(env, refuse),
    webhookAllowPrivate: env.WEBHOOK_ALLOW_PRIVATE,
  }
  if (production) faults.push(...productionFaults(env, config))
  if (faults.length > 0) throw new ConfigError(faults.join('\n'))
  return config
}

/** An empty variable counts as unset. */
function parse(source: Record<string, string | undefined>): Static<typeof Environment> {
  const set = Object.fromEntries(variableNames.filter((name) => source[name]).map((name) => [name, source[name]]))
  const env = Value.Default(Environment, Value.Convert(Environment, set))
  const faults = [...Value.Errors(Environment, env)].map(
    ({ path, message, value }) =>
      `${path.slice(1)} is not valid: ${message.toLowerCase()}, got ${JSON.stringify(value)}.`,
  )
  if (faults.length > 0) throw new ConfigError([...new Set(faults)].join('\n'))
  return env as Static<typeof Environment>
}

/** The process's environment, with defaults from `.env` in the working directory. */
export function readEnvironment(): Record<string, string | undefined> {
  if (existsSync('.env')) process.loadEnvFile('.env')
  return process.env
}
