// Filters of a list. They live in the URL, so that a filtered list can be shared and reloaded.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { useParam } from '../../kit/index.ts'

export function Filters({ children }: { children: ComponentChildren }) {
  return (
    <search class="filters" aria-label="Filters">
      {children}
    </search>
  )
}

/** Text by value. The empty value means no filter; an object is a group of options. */
export type Options = { [value: string]: string | Record<string, string> }

type FilterProps = { name: string; label: string }

export function Filter({ name, label, options }: FilterProps & { options: Options }) {
  const [value, set] = useParam(name)
  const isKnown = value in Object.assign({}, options, ...Object.values(options).filter((it) => typeof it === 'object'))
  return (
    <select aria-label={label} value={value} onInput={(event) => set(event.currentTarget.value)}>
      {Object.entries(options).map(([key, of]) =>
        typeof of === 'string' ? (
          option([key, of])
        ) : (
          <optgroup key={key} label={key}>
            {Object.entries(of).map(option)}
          </optgroup>
        ),
      )}
      {!isKnown && option([value, value])}
    </select>
  )
}

const option = ([value, text]: [string, string]) => (
  <option key={value} value={value}>
    {text}
  </option>
)

const typingMs = 250

/** A text filter, applied when typing pauses. */
export function FindBox({ name, label, hint }: FilterProps & { hint?: string }) {
  const [value, set] = useParam(name)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (input.current && document.activeElement !== input.current) input.current.value = value
  }, [value])
  const applySoon = (text: string) => {
    clearTimeout(timer.current)
    timer.current = setTimeout(() => set(text.trim()), typingMs)
  }
  return (
    <input
      ref={input}
      type="search"
      aria-label={hint ? `${label}, ${hint}` : label}
      placeholder={label}
      title={hint}
      maxLength={300}
      defaultValue={value}
      onInput={(event) => applySoon(event.currentTarget.value)}
    />
  )
}

/** Local time in the field, UTC in the URL. */
export function FilterTime({ name, label }: FilterProps) {
  const [value, set] = useParam(name)
  const at = Date.parse(value)
  const local = Number.isNaN(at)
    ? ''
    : new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
  return (
    <label>
      {label}
      <input
        type="datetime-local"
        key={local}
        defaultValue={local}
        onChange={(event) => {
          const { value: chosen } = event.currentTarget
          set(chosen && new Date(chosen).toISOString())
        }}
      />
    </label>
  )
}

/** The URL's parameters as a query of the API, without empty ones. */
export function useFilters<N extends string>(...names: N[]): Partial<Record<N, string>> {
  const entries = names.map((name) => [name, useParam(name)[0]] as const)
  return Object.fromEntries(entries.filter(([, value]) => value !== '')) as Partial<Record<N, string>>
}
