// Filters of a list. They live in the address, so that a filtered list can be shared and reloaded.
import type { ComponentChildren } from 'preact'
import { useParam } from '../../kit/index.ts'

export type Option = { value: string; text: string; of?: Option[] }

export function Filters({ children }: { children: ComponentChildren }) {
  return (
    <search class="filter-form" aria-label="Filters">
      {children}
    </search>
  )
}

type FilterProps = { name: string; label: string }

export function FilterSelect({ name, label, options }: FilterProps & { options: readonly Option[] }) {
  const [value, set] = useParam(name)
  const known = options.some((option) => option.value === value || option.of?.some((it) => it.value === value))
  return (
    <label>
      <span>{label}</span>
      <select value={value} onInput={(event) => set(event.currentTarget.value)}>
        {options.map((option) => (option.of ? <Group key={option.text} {...option} of={option.of} /> : item(option)))}
        {!known && item({ value, text: value })}
      </select>
    </label>
  )
}

const Group = ({ text, of }: { text: string; of: Option[] }) => <optgroup label={text}>{of.map(item)}</optgroup>

const item = ({ value, text }: Option) => (
  <option key={value} value={value}>
    {text}
  </option>
)

/** Taken when the field is left or Enter is pressed, so that half a word asks nothing. */
export function FilterText({ name, label, placeholder }: FilterProps & { placeholder?: string }) {
  const [value, set] = useParam(name)
  return (
    <label>
      <span>{label}</span>
      <input
        type="search"
        key={value}
        defaultValue={value}
        placeholder={placeholder}
        maxLength={300}
        onChange={(event) => set(event.currentTarget.value.trim())}
      />
    </label>
  )
}

/** Local time in the field, UTC in the address. */
export function FilterTime({ name, label }: FilterProps) {
  const [value, set] = useParam(name)
  const at = Date.parse(value)
  const local = Number.isNaN(at)
    ? ''
    : new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
  return (
    <label>
      <span>{label}</span>
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

/** The parameters of the address as a query of the API; what is empty is left out. */
export function useFilters<N extends string>(...names: N[]): Partial<Record<N, string>> {
  const found = names.map((name) => [name, useParam(name)[0]] as const)
  return Object.fromEntries(found.filter(([, value]) => value !== '')) as Partial<Record<N, string>>
}
