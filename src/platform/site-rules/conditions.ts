// Conditions of _redirects rules: query parameters, and the visitor's preferred language.
import type { Captures } from './patterns.ts'

/** A value that starts with a colon matches anything and captures it under that name. */
export type Parameter = { name: string; value: string }

const maxAccepted = 20
// Limits per choice. The weight usually comes first, and real tags have at most eight subtags.
const maxWeights = 4
const maxSubtags = 8

/** `id=7` or `id=:id`; null for anything else. */
export function parseParameter(text: string): Parameter | null {
  const [, name, value] = /^([^=&?#:]+)=([^&?#]*)$/.exec(text) ?? []
  if (name === undefined || value === undefined || (value.startsWith(':') && !/^:[A-Za-z]\w*$/.test(value))) return null
  try {
    return { name: decodeURIComponent(name), value: decodeURIComponent(value) }
  } catch {
    return null
  }
}

/** A parsed query. It is parsed once, because a site may have a thousand rules. */
export type Query = { first: ReadonlyMap<string, string>; parts: { name: string; text: string }[] }

export function readQuery(query: string): Query {
  const first = new Map<string, string>()
  const texts = query.slice(1).split('&').filter(Boolean)
  const parts = [...new URLSearchParams(query)].map(([name, value], index) => {
    if (!first.has(name)) first.set(name, value)
    return { name, text: texts[index]! }
  })
  return { first, parts }
}

/** The captured parameters; null if a required one is missing or different. */
export function matchParameters(parameters: readonly Parameter[], { first }: Query): Captures | null {
  const captures: Captures = {}
  for (const { name, value } of parameters) {
    const found = first.get(name)
    if (found === undefined || found === '') return null
    if (value.startsWith(':')) captures[value.slice(1)] = found
    else if (value !== found) return null
  }
  return captures
}

/** The query without these parameters. */
export function without(parameters: readonly Parameter[], { parts }: Query): string {
  const names = new Set(parameters.map(({ name }) => name))
  const left = parts.filter(({ name }) => !names.has(name)).map(({ text }) => text)
  return left.length === 0 ? '' : `?${left.join('&')}`
}

/** The languages of a condition such as `Language=en,de`; null for any other condition. */
export function languagesOf(condition: string): string[] | null {
  const [, list] = /^language=([A-Za-z0-9,-]+)$/i.exec(condition) ?? []
  const languages = list?.toLowerCase().split(',').filter(Boolean)
  return languages && languages.length > 0 ? languages : null
}

/** The visitor's first choice, in lower case. */
export function preferredLanguage(accepted = ''): string {
  let best = ''
  let highest = 0
  for (const choice of accepted.split(',', maxAccepted)) {
    const [language = '', ...parameters] = choice.split(';', maxWeights)
    const weight = parameters.map((text) => /^\s*q=([01](?:\.\d{0,3})?)\s*$/i.exec(text)?.[1]).find(Boolean)
    const quality = weight === undefined ? 1 : Number(weight)
    if (quality <= highest) continue
    highest = quality
    best = language.trim().toLowerCase()
  }
  return best
}

/** Whether a choice is one of the languages or a variant of one: `en` also matches `en-GB`. */
export function isPreferred(languages: ReadonlySet<string>, choice: string): boolean {
  let kind = choice.split('-', maxSubtags).join('-')
  for (;;) {
    if (languages.has(kind)) return true
    const end = kind.lastIndexOf('-')
    if (end < 0) return false
    kind = kind.slice(0, end)
  }
}
