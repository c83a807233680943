// Generates openapi.yaml without a server: the app gets no dependencies, because only its routes are read.
import { pino } from 'pino'
import { loadConfig } from '../config.ts'
import { buildApp } from './app.ts'
import type { Deps } from './http/deps.ts'
import { yamlOf } from './http/openapi/openapi.ts'

export async function renderOpenApi(): Promise<string> {
  const deps = { config: loadConfig({}), log: pino({ level: 'silent' }) } as Deps
  const app = await buildApp(deps)
  await app.ready()
  const text = yamlOf(app)
  await app.close()
  return text
}
