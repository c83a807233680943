// Forms: native controls, API errors next to their fields, and the curl of the call.
import { type ComponentChildren, createContext } from 'preact'
import { useContext, useEffect, useId, useRef, useState } from 'preact/hooks'
import { BerthError } from './api.ts'
import type { Call } from './calls.ts'
import { ProblemView } from './feedback.tsx'
import { Curl, CurlButton } from './panel.tsx'

/** Values by field name; an unchecked checkbox is absent. */
export type Values = Record<string, string>

type Errors = ReadonlyMap<string, string>
const FormErrors = createContext<Errors>(new Map())

type FormProps<T> = {
  /** Creates the call for these values, also for its curl, so it must have no side effects. */
  call(values: Values): Call<T>
  /** The label of the button. */
  submit: string
  done?(response: T, values: Values): void
  cancel?: () => void
  /** What the second button says, if it does more than close the form. */
  cancelText?: string
  /** Puts the button next to the fields instead of a footer. */
  inline?: boolean
  danger?: boolean
  /** Not the primary action of the page. */
  second?: boolean
  children: ComponentChildren
}

export function valuesOf(form: HTMLFormElement): Values {
  const entries = [...new FormData(form)].filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(entries)
}

/** Fields are named by their path in the body: `name`, `settings/buildCommand`. */
export function Form<T>({
  call,
  submit,
  done,
  cancel,
  cancelText = 'Cancel',
  inline,
  danger,
  second,
  children,
}: FormProps<T>) {
  const form = useRef<HTMLFormElement>(null)
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const [curl, setCurl] = useState<string | null>(null)
  const [hasCurl, setHasCurl] = useState(false)
  // Refused fields that were edited since no longer show an error.
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set())
  const current = () => call(valuesOf(form.current!))
  useEffect(() => setHasCurl(current().curl !== null), [])
  useEffect(() => {
    // Focuses the first refused field.
    if (error) form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  }, [error])

  async function send(event: Event): Promise<void> {
    event.preventDefault()
    if (busy) return
    setBusy(true)
    setChanged(new Set())
    const values = valuesOf(form.current!)
    try {
      const response = await call(values).send()
      setError(null)
      done?.(response, values)
    } catch (failure) {
      setError(failure)
    }
    setBusy(false)
  }
  const refused = fieldErrors(error)
  const errors = new Map([...refused].filter(([name]) => !changed.has(name)))
  const isShown = (name: string) => form.current?.elements.namedItem(name) !== null
  const showProblem = error !== null && (refused.size === 0 || [...refused.keys()].some((name) => !isShown(name)))
  const curlButton = hasCurl && (
    <CurlButton open={curl !== null} toggle={() => setCurl(curl === null ? current().curl : null)} />
  )
  const buttons = (
    <>
      {inline && curlButton}
      {cancel && (
        <button type="button" onClick={cancel}>
          {cancelText}
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
          if (errors.has(name)) setChanged(new Set([...changed, name]))
        }}
      >
        <div class={inline ? 'row wrap' : 'body stack'}>
          {children}
          {showProblem && <ProblemView error={error} />}
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

/** Errors by field name: `#/settings/buildCommand` belongs to `settings/buildCommand`. */
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
  /** More than one renders a text area. */
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

/** In `Values` only if checked. */
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
