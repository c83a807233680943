// Forms: native controls, the errors of the API beside their fields, and the curl of what would be sent.
import { type ComponentChildren, createContext } from 'preact'
import { useContext, useEffect, useId, useRef, useState } from 'preact/hooks'
import { BerthError } from './api.ts'
import type { Call } from './calls.ts'
import { ProblemView } from './feedback.tsx'
import { Curl, CurlButton } from './panel.tsx'

/** By the names of the fields; a checkbox is `on` or absent. */
export type Values = Record<string, string>

type Errors = ReadonlyMap<string, string>
const FormErrors = createContext<Errors>(new Map())

type FormProps<T> = {
  /** What is sent for these values; also shown as curl, so it must not do anything by itself. */
  call(values: Values): Call<T>
  /** What the button says. */
  submit: string
  done?(answer: T, values: Values): void
  cancel?: () => void
  /** Instead of dialog's footer: the button stands in the line of the fields. */
  inline?: boolean
  danger?: boolean
  /** Not the first thing to do on the page. */
  second?: boolean
  children: ComponentChildren
}

export function valuesOf(form: HTMLFormElement): Values {
  const entries = [...new FormData(form)].filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(entries)
}

/** Fields are named by their place in the body: `name`, `settings/buildCommand`. */
export function Form<T>({ call, submit, done, cancel, inline, danger, second, children }: FormProps<T>) {
  const form = useRef<HTMLFormElement>(null)
  const [error, fail] = useState<unknown>(null)
  const [busy, wait] = useState(false)
  const [curl, setCurl] = useState<string | null>(null)
  const [able, enable] = useState(false)
  // What was refused and has been changed since is not shown as wrong any more.
  const [changed, change] = useState<ReadonlySet<string>>(new Set())
  const current = () => call(valuesOf(form.current!))
  useEffect(() => enable(current().curl !== null), [])
  useEffect(() => {
    // The first field that was refused, when the answer has come.
    if (error) form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  }, [error])

  async function send(event: Event): Promise<void> {
    event.preventDefault()
    if (busy) return
    wait(true)
    change(new Set())
    const values = valuesOf(form.current!)
    try {
      const answer = await call(values).send()
      fail(null)
      done?.(answer, values)
    } catch (failure) {
      fail(failure)
    }
    wait(false)
  }
  const refused = fieldErrors(error)
  const errors = new Map([...refused].filter(([name]) => !changed.has(name)))
  const isShown = (name: string) => form.current?.elements.namedItem(name) !== null
  const rest = error !== null && (refused.size === 0 || [...refused.keys()].some((name) => !isShown(name)))
  const curlButton = able && (
    <CurlButton open={curl !== null} toggle={() => setCurl(curl === null ? current().curl : null)} />
  )
  const buttons = (
    <>
      {inline && curlButton}
      {cancel && (
        <button type="button" onClick={cancel}>
          Cancel
        </button>
      )}
      <button type="submit" class={danger ? 'danger' : second ? '' : 'primary'} disabled={busy}>
        {submit}
      </button>
    </>
  )
  return (
    <FormErrors.Provider value={errors}>
      <form
        ref={form}
        class={inline ? 'inline' : ''}
        noValidate
        onSubmit={send}
        onInput={(event) => {
          if (curl !== null) setCurl(current().curl)
          const { name } = event.target as HTMLInputElement
          if (errors.has(name)) change(new Set([...changed, name]))
        }}
      >
        <div class={inline ? 'row wrap' : 'body stack'}>
          {children}
          {rest && <ProblemView error={error} />}
          {inline && buttons}
        </div>
        {!inline && (
          <footer>
            {curlButton}
            <div class="right row">{buttons}</div>
          </footer>
        )}
        {curl !== null && <Curl text={curl} />}
      </form>
    </FormErrors.Provider>
  )
}

/** By the name of the field: `#/settings/buildCommand` belongs to `settings/buildCommand`. */
export function fieldErrors(error: unknown): Errors {
  if (!(error instanceof BerthError)) return new Map()
  return new Map(error.errors.map(({ pointer, detail }) => [pointer.replace(/^#\//, ''), detail]))
}

export type FieldProps = {
  name: string
  label: string
  hint?: ComponentChildren
  value?: string
  placeholder?: string
  type?: 'text' | 'email' | 'password' | 'number' | 'search' | 'url' | 'date' | 'datetime-local'
  autocomplete?: string
  required?: boolean
  mono?: boolean
  /** More than one: a text area. */
  lines?: number
  autoFocus?: boolean
  onInput?(value: string): void
}

export function Field({ name, label, hint, value, lines = 1, mono, autoFocus, onInput, ...native }: FieldProps) {
  const { id, error, described } = useField(name, hint)
  const element = useRef<HTMLInputElement & HTMLTextAreaElement>(null)
  useEffect(() => {
    if (autoFocus) element.current?.focus()
  }, [])
  const props = {
    ...native,
    id,
    name,
    ref: element,
    defaultValue: value,
    class: mono ? 'mono' : '',
    spellcheck: mono ? false : undefined,
    autocapitalize: mono || native.type === 'email' ? ('off' as const) : undefined,
    'aria-invalid': error !== undefined,
    'aria-describedby': described,
    onInput: onInput && ((event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value)),
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {lines > 1 ? <textarea {...props} rows={lines} /> : <input {...(props as object)} />}
      <FieldNotes id={id} hint={hint} error={error} />
    </div>
  )
}

type SelectProps = Pick<FieldProps, 'name' | 'label' | 'hint' | 'value'> & {
  options: readonly (string | { value: string; text: string })[]
  onInput?(value: string): void
}

export function Select({ name, label, hint, value, options, onInput }: SelectProps) {
  const { id, error, described } = useField(name, hint)
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        name={name}
        aria-invalid={error !== undefined}
        aria-describedby={described}
        onInput={(event) => onInput?.(event.currentTarget.value)}
      >
        {options.map((option) => {
          const { value: it, text } = typeof option === 'string' ? { value: option, text: option } : option
          return (
            <option key={it} value={it} selected={it === value}>
              {text}
            </option>
          )
        })}
      </select>
      <FieldNotes id={id} hint={hint} error={error} />
    </div>
  )
}

type CheckProps = { name: string; label: string; hint?: ComponentChildren; checked?: boolean; value?: string }

/** In `Values` it is there only when it is checked. */
export function Check({ name, label, hint, checked, value = 'on' }: CheckProps) {
  const { id, error, described } = useField(name, hint)
  return (
    <div class="field check">
      <input type="checkbox" id={id} name={name} value={value} defaultChecked={checked} aria-describedby={described} />
      <label for={id}>{label}</label>
      <FieldNotes id={id} hint={hint} error={error} />
    </div>
  )
}

function useField(name: string, hint: ComponentChildren) {
  const id = useId()
  const error = useContext(FormErrors).get(name)
  const described = [hint && `${id}-hint`, error !== undefined && `${id}-error`].filter(Boolean).join(' ') || undefined
  return { id, error, described }
}

function FieldNotes({ id, hint, error }: { id: string; hint: ComponentChildren; error: string | undefined }) {
  return (
    <>
      {error !== undefined && (
        <p id={`${id}-error`} class="wrong">
          {error}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} class="soft">
          {hint}
        </p>
      )}
    </>
  )
}
