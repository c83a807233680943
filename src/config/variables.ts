// The types of environment variables, and how the parts of the configuration report mistakes in them.
import { type Static, type TObject, type TProperties, Type } from '@sinclair/typebox'

export class ConfigError extends Error {}

/** Takes one sentence per mistake, so that a start names all of them at once. */
export type Refuse = (sentence: string) => void

export type Values<Variables extends TProperties> = Static<TObject<Variables>>

export const Port = (fallback: number) => Type.Integer({ minimum: 0, maximum: 65535, default: fallback })
export const Text = (fallback = '') => Type.String({ default: fallback })
export const List = (fallback = '') => Type.String({ default: fallback, description: 'comma-separated' })

export function list(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** Whether a name is the domain itself or below it. */
export function isBelow(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`)
}
