// Conditions of rules in _redirects: parameters of the query, and the language that a visitor prefers.
import type { Captures } from './patterns.ts'

/** A value that begins with a colon stands for any, under that name. */
export type Parameter = { name: string; value: string }

const mostAccepted = 20

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

/** The query without the parameters that are asked for, whose values go to `captures`; null if one is missing. */
export function takeParameters(parameters: readonly Parameter[], query: string, captures: Captures): string | null {
  const given = new URLSearchParams(query)
  for (const { name, value } of parameters) {
    const found = given.get(name)
    if (found === null || found === '') return null
    if (value.startsWith(':')) captures[value.slice(1)] = found
    else if (value !== found) return null
  }
  const taken = new Set(parameters.map(({ name }) => name))
  const left = query
    .slice(1)
    .split('&')
    .filter((part) => part !== '' && !taken.has([...new URLSearchParams(part).keys()][0] ?? ''))
  return left.length === 0 ? '' : `?${left.join('&')}`
}

/** The languages of a condition `Language=en,de`; null for any other one. */
export function languagesOf(condition: string): string[] | null {
  const [, list] = /^language=([A-Za-z0-9,-]+)$/i.exec(condition) ?? []
  const languages = list?.toLowerCase().split(',').filter(Boolean)
  return languages && languages.length > 0 ? languages : null
}

/** Whether the visitor's first choice is one of the languages, or a kind of it: `en` stands for `en-GB` too. */
export function isPreferred(languages: readonly string[], accepted = ''): boolean {
  let best = ''
  let highest = 0
  for (const choice of accepted.split(',', mostAccepted)) {
    const [language = '', ...parameters] = choice.split(';')
    const weight = parameters.map((text) => /^\s*q=([01](?:\.\d{0,3})?)\s*$/i.exec(text)?.[1]).find(Boolean)
    const quality = weight === undefined ? 1 : Number(weight)
    if (quality <= highest) continue
    highest = quality
    best = language.trim().toLowerCase()
  }
  return languages.some((language) => best === language || best.startsWith(`${language}-`))
}
