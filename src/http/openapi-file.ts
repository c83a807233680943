// openapi.yaml without a server: the app is built on nothing, because only its routes are looked at.
import { pino } from 'pino'
import { buildApp } from '../app.ts'
import { loadConfig } from '../config.ts'
import type { Deps } from '../deps.ts'
import { yamlOf } from './openapi.ts'

export async function renderOpenApi(): Promise<string> {
  const deps = { config: loadConfig({}), log: pino({ level: 'silent' }) } as Deps
  const app = await buildApp(deps)
  await app.ready()
  const text = yamlOf(app)
  await app.close()
  return text
}
