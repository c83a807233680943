// compose.yaml as compose itself reads it: merged, and with the variables of an .env file filled in.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

export const root = join(import.meta.dirname, '../..')

export type Service = {
  image: string
  build?: string
  command?: string[]
  env_file?: string
  environment?: Record<string, string | number>
  init?: boolean
  read_only?: boolean
  privileged?: boolean
  user?: string
  cap_drop?: string[]
  cap_add?: string[]
  security_opt?: string[]
  devices?: string[]
  tmpfs?: string[]
  sysctls?: Record<string, string | number>
  mem_limit?: string
  pids_limit?: number
  shm_size?: string
  ports?: string[]
  volumes?: string[]
  networks?: string[] | Record<string, { ipv4_address?: string }>
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test?: string[]; disable?: boolean; interval?: string; timeout?: string; retries?: number }
  restart?: string | undefined
  stop_grace_period?: string
}

export type Compose = {
  services: Record<string, Service>
  networks: Record<string, { ipam: { config: { subnet: string }[] } }>
  volumes: Record<string, null>
}

export type Values = Record<string, string>

/** The names of all variables in a text, also of those within defaults. */
export const variablesOf = (text: string) => new Set([...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name!))

/** `${A}`, `${A:-default}` and `${A:?message}`, from the innermost on; throws the message. */
export function interpolate(text: string, values: Values): string {
  const innermost = /\$\{(\w+)(?::([-?])([^${}]*))?\}/
  for (let found = innermost.exec(text); found; found = innermost.exec(text)) {
    const [whole, name, operator, rest = ''] = found as unknown as [string, string, string | undefined, string?]
    const value = values[name] ?? ''
    if (operator === '?' && value === '') throw new Error(`${name}: ${rest}`)
    text = text.replace(whole, () => value || (operator === '-' ? rest : ''))
  }
  return text
}

export const composeText = () => readFileSync(join(root, 'compose.yaml'), 'utf8')

export function readCompose(values: Values): Compose {
  const fill = (node: unknown): unknown => {
    if (typeof node === 'string') return interpolate(node, values)
    if (Array.isArray(node)) return node.map(fill)
    if (node === null || typeof node !== 'object') return node
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, fill(value)]))
  }
  return fill(parse(composeText(), { merge: true })) as Compose
}

/** `NAME=value` lines; with `commented`, also those that are commented out. */
export function readEnvFile(text: string, { commented = false } = {}): Values {
  const pattern = commented ? /^#?([A-Z][A-Z0-9_]*)=(.*)$/gm : /^([A-Z][A-Z0-9_]*)=(.*)$/gm
  return Object.fromEntries([...text.matchAll(pattern)].map(([, name, value]) => [name!, value!]))
}

/** What a process of the service finds in its environment: the whole .env, and above it the service's own. */
export function environmentOf(service: Service, values: Values): Values {
  const own = Object.entries(service.environment ?? {}).map(([name, value]) => [name, String(value)])
  return { ...(service.env_file ? values : {}), ...Object.fromEntries(own) }
}
