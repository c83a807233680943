// Filters of a list. They live in the address, so that a filtered list can be shared and reloaded.
import { useEffect, useRef } from 'preact/hooks'
import { useParam } from '../kit/index.ts'

type FilterProps = {
  name: string
  label: string /** Text by value; the empty value is no filter. */
  options: Record<string, string>
}

export function Filter({ name, label, options }: FilterProps) {
  const [value, set] = useParam(name)
  return (
    <select aria-label={label} value={value} onInput={(event) => set(event.currentTarget.value)}>
      {Object.entries(options).map(([key, text]) => (
        <option key={key} value={key}>
          {text}
        </option>
      ))}
    </select>
  )
}

const typingMs = 250

/** Text, taken when one pauses. */
export function FindBox({ name, label, hint }: { name: string; label: string; hint?: string }) {
  const [value, set] = useParam(name)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (input.current && document.activeElement !== input.current) input.current.value = value
  }, [value])
  const take = (text: string) => {
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
      defaultValue={value}
      onInput={(event) => take(event.currentTarget.value)}
    />
  )
}
