// `berth api`: calls the API directly.
import { readFile } from 'node:fs/promises'
import type { Action } from '../kit/action.ts'
import { exitCodeOfStatus, usage } from '../kit/failures.ts'
import { readStdin } from '../kit/prompt.ts'
import { clean, cleanJson, cleanLines } from '../kit/text.ts'

type Options = { method?: string; data?: string; field?: string[]; header?: string[]; include?: boolean }

export const api: Action<Options> = async (context, [path], options) => {
  const body = await bodyOf(options)
  const method = (options.method ?? (body === undefined && !options.field ? 'GET' : 'POST')).toUpperCase()
  const fields = (options.field ?? []).map((pair) => split(pair, '=', '--field'))
  const isRead = method === 'GET' || method === 'HEAD'
  const headers = Object.fromEntries((options.header ?? []).map((text) => split(text, ':', '--header')))
  const type = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
  const sent = body ?? (isRead || fields.length === 0 ? undefined : JSON.stringify(objectOf(fields)))
  const response = await context.send(method, pathOf(path!, isRead ? fields : []), {
    body: sent,
    headers: { ...(sent !== undefined && !type && { 'content-type': 'application/json' }), ...headers },
    any: true,
  })
  if (options.include) {
    const lines = [`HTTP ${response.status}`, ...[...response.headers].map(([name, value]) => `${name}: ${value}`)]
    process.stdout.write(`${lines.map(clean).join('\n')}\n\n`)
  }
  const text = await response.text()
  if (text !== '') process.stdout.write(`${format(text, response.headers.get('content-type') ?? '')}\n`)
  return exitCodeOfStatus(response.status)
}

/** The path with or without /api. Never another server: it would get the token. */
function pathOf(path: string, query: [string, string][]): string {
  if (/^[a-z][a-z0-9+.-]*:|^[/\\]{2}/i.test(path)) throw usage('The path must be a path of the API, such as /projects.')
  const url = new URL(`/api/${path.replace(/^\/+/, '').replace(/^api\//, '')}`, 'http://server')
  for (const [name, value] of query) url.searchParams.append(name, value)
  if (!url.pathname.startsWith('/api/')) throw usage('The path must stay below /api.')
  return `${url.pathname}${url.search}`
}

async function bodyOf({ data, field }: Options): Promise<string | undefined> {
  if (data === undefined) return undefined
  if (field) throw usage('Give --data or --field, not both.')
  if (data === '-') return readStdin()
  return data.startsWith('@') ? readFile(data.slice(1), 'utf8') : data
}

function split(text: string, by: string, option: string): [string, string] {
  const at = text.indexOf(by)
  if (at < 1) throw usage(`${option} must be name${by}value, not ${text}.`)
  return [text.slice(0, at), by === ':' ? text.slice(at + 1).trim() : text.slice(at + 1)]
}

/** `a.b=1` is nested. true, false, null and numbers are parsed; everything else is text. */
function objectOf(fields: [string, string][]): object {
  const root: Record<string, unknown> = {}
  for (const [name, value] of fields) {
    const keys = name.split('.')
    const last = keys.pop()!
    let parent = root
    for (const key of keys) {
      parent[key] ??= {}
      parent = parent[key] as Record<string, unknown>
    }
    parent[last] = /^(true|false|null|-?\d+(\.\d+)?)$/.test(value) ? JSON.parse(value) : value
  }
  return root
}

function format(text: string, type: string): string {
  if (!/json/.test(type)) return cleanLines(text)
  try {
    return cleanJson(JSON.parse(text), 2)
  } catch {
    return cleanLines(text)
  }
}
