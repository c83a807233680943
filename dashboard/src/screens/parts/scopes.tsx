// Scopes as a matrix: a row per resource, with its access level.
import { useEffect, useRef, useState } from 'preact/hooks'
import { access, type Schemas, Select, type Values } from '../../kit/index.ts'

export type Scope = Schemas['Token']['scopes'][number]
type Level = 'none' | 'read' | 'write'

const nouns = {
  projects: 'Projects, variables, push hooks',
  deployments: 'Deployments and their logs',
  domains: 'Domains and certificates',
  dns: 'DNS records and zones',
  tickets: 'Support tickets',
  webhooks: 'Webhooks and deliveries',
  events: 'Events',
  tokens: 'Tokens',
  members: 'Members and invitations',
}
export type Noun = keyof typeof nouns
export const nounNames = Object.keys(nouns) as Noun[]

const levels: Level[] = ['none', 'read', 'write']
const words: Record<Level, string> = { none: '–', read: 'read', write: 'write' }

export function levelOf(scopes: readonly string[], noun: Noun): Level {
  if (scopes.includes('*') || scopes.includes(`${noun}:write`)) return 'write'
  return scopes.includes(`${noun}:read`) ? 'read' : 'none'
}

/** `Everything`, `deployments, dns; reads events`. */
export function describeScopes(scopes: readonly string[]): string {
  const rest = scopes.includes('operator') ? ['operator'] : []
  if (scopes.includes('*')) return ['Everything', ...rest].join(', ')
  const writes = nounNames.filter((noun) => levelOf(scopes, noun) === 'write')
  const reads = nounNames.filter((noun) => levelOf(scopes, noun) === 'read')
  return [[...writes, ...rest].join(', '), reads.length > 0 && `reads ${reads.join(', ')}`].filter(Boolean).join('; ')
}

/** What tokens or roles can do, with a column each. */
export function ScopeTable({ label, of }: { label: string; of: { name: string; scopes: readonly string[] }[] }) {
  return (
    <table class="scopes">
      <caption class="unseen">{label}; write includes read</caption>
      <thead>
        <tr>
          <th scope="col">Resource</th>
          {of.map(({ name }) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {nounNames.map((noun) => (
          <tr key={noun}>
            <th scope="row">{nouns[noun]}</th>
            {of.map(({ name, scopes }) => {
              const level = levelOf(scopes, noun)
              return (
                <td key={name} class={level === 'write' ? 'whole' : 'whole soft'}>
                  {words[level]}
                </td>
              )
            })}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const presets: { value: string; text: string; scopes: Scope[] }[] = [
  { value: 'deploy', text: 'Deploy, for CI', scopes: ['deployments:write', 'projects:read'] },
  { value: 'dns', text: 'Change DNS, for certbot', scopes: ['dns:write', 'domains:read'] },
  { value: 'read', text: 'Read everything', scopes: nounNames.map((noun) => `${noun}:read` as Scope) },
  { value: 'some', text: 'Choose below', scopes: [] },
  { value: '*', text: 'Everything, including future scopes', scopes: ['*'] },
]

/** Your own scopes: you can't grant more. */
export const ownScopes = () => access.value?.scopes ?? []

type FieldsProps = {
  /** The scopes that can be chosen. */
  within: readonly string[]
  /** Initially chosen; without them, presets are offered. */
  chosen?: readonly string[]
}

export function ScopeFields({ within, chosen }: FieldsProps) {
  const all = within.includes('*')
  const [preset, setPreset] = useState(chosen ? (chosen.includes('*') ? '*' : 'some') : 'deploy')
  const table = useRef<HTMLTableElement>(null)
  useEffect(() => {
    // The form updates its curl on input events; these fields change without one.
    table.current?.dispatchEvent(new Event('input', { bubbles: true }))
  }, [preset])
  const now = preset === 'some' ? (chosen ?? []) : presets.find(({ value }) => value === preset)!.scopes
  return (
    <>
      <Select
        name="preset"
        label={chosen ? 'Scopes' : 'What is it for?'}
        value={preset}
        options={presets.filter(({ value }) => (value === '*' ? all : !chosen || value === 'some'))}
        onInput={setPreset}
      />
      {preset !== '*' && (
        <div class="matrix">
          <table key={preset} ref={table}>
            <caption class="unseen">Scopes</caption>
            <thead>
              <tr>
                <th scope="col">Resource</th>
                {['nothing', 'read', 'write'].map((word) => (
                  <th key={word} scope="col" class="pick">
                    {word}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {nounNames.map((noun) => (
                <ScopeRow key={noun} noun={noun} max={levelOf(within, noun)} now={levelOf(now, noun)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

function ScopeRow({ noun, max, now }: { noun: Noun; max: Level; now: Level }) {
  const top = levels.indexOf(max)
  const first = levels[Math.min(top, levels.indexOf(now))]
  return (
    <tr>
      <th scope="row">{nouns[noun]}</th>
      {levels.map((level, index) => {
        // Nobody can write events.
        const isOffered = index <= top && !(noun === 'events' && level === 'write')
        return (
          <td key={level} class="pick">
            {isOffered ? (
              <input
                type="radio"
                name={`scope/${noun}`}
                value={level}
                defaultChecked={level === first || (!isOffered && index === top)}
                aria-label={`${nouns[noun]}: ${level === 'none' ? 'nothing' : level}`}
              />
            ) : (
              <span class="soft">–</span>
            )}
          </td>
        )
      })}
    </tr>
  )
}

export function scopesFrom(values: Values): Scope[] {
  if (values.preset === '*') return ['*']
  return nounNames.flatMap((noun) => {
    const level = values[`scope/${noun}`]
    return level === 'read' || level === 'write' ? [`${noun}:${level}` as Scope] : []
  })
}
