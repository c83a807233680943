// The pieces of a screen: its head, panels with their curl, tabs, copying.
import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { Commands, curlsOf, useCommands } from './act.tsx'
import type { Call } from './calls.ts'
import { toast } from './feedback.tsx'
import { place } from './router.tsx'

type TopProps = {
  title: string
  /** Where it belongs to: links. */
  trail?: ComponentChildren
  state?: ComponentChildren
  /** Buttons. */
  children?: ComponentChildren
}

/** The head of a screen. */
export function Top({ title, trail, state, children }: TopProps) {
  const [open, show] = useState(false)
  const commands = useCommands()
  const curl = curlsOf(null, commands.value)
  return (
    <Commands.Provider value={commands}>
      <div class="top">
        <div class="heading">
          {trail && <div class="soft">{trail}</div>}
          <h1>{title}</h1>
        </div>
        {state}
        {children && (
          <div class="right row">
            {curl && <CurlButton open={open} toggle={() => show(!open)} />}
            {children}
          </div>
        )}
      </div>
      {open && curl && (
        <div class="panel">
          <Curl text={curl} />
        </div>
      )}
    </Commands.Provider>
  )
}

type PanelProps = {
  title?: string
  /** A word beside the title, such as a State. */
  state?: ComponentChildren
  /** Soft text on the right. */
  note?: ComponentChildren
  actions?: ComponentChildren
  /** The call that the panel shows. */
  call?: Call<unknown> | null
  /** Space around what is inside; a table or a log needs none. */
  pad?: boolean
  children?: ComponentChildren
}

/** A title, what can be done with it, and one thing to look at. */
export function Panel({ title, state, note, actions, call, pad = false, children }: PanelProps) {
  const [open, show] = useState(false)
  const id = useId()
  const commands = useCommands()
  const curl = curlsOf(call, commands.value)
  return (
    <Commands.Provider value={commands}>
      <section class="panel" aria-labelledby={title ? id : undefined}>
        {(title || actions || curl) && (
          <header>
            {title && <h2 id={id}>{title}</h2>}
            {state}
            <div class="right row">
              {note && <span class="soft">{note}</span>}
              {actions}
              {curl && <CurlButton open={open} toggle={() => show(!open)} />}
            </div>
          </header>
        )}
        {pad ? <div class="body">{children}</div> : children}
        {open && curl && <Curl text={curl} />}
      </section>
    </Commands.Provider>
  )
}

export function CurlButton({ open, toggle }: { open: boolean; toggle: () => void }) {
  return (
    <button type="button" class="quiet" aria-expanded={open} onClick={toggle}>
      curl
    </button>
  )
}

/** The exact command, to read and to copy. */
export function Curl({ text }: { text: string }) {
  return (
    <div class="curl">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard. */}
      <pre tabIndex={0}>{text}</pre>
      <Copy text={text} what="command" />
    </div>
  )
}

export async function copy(text: string, what = 'text'): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    toast(`Copied the ${what}.`)
  } catch {
    toast(`The browser does not let the page copy. Select the ${what} and copy it yourself.`, true)
  }
}

/** `what` is read out: "Copy the command". */
export function Copy({ text, what = 'text' }: { text: string; what?: string }) {
  return (
    <button type="button" class="quiet" aria-label={`Copy the ${what}`} onClick={() => void copy(text, what)}>
      Copy
    </button>
  )
}

/** Something to copy, with its button. */
export function CopyLine({ text, what, children }: { text: string; what?: string; children?: ComponentChildren }) {
  return (
    <div class="copy">
      <code>{text}</code>
      {children}
      <Copy text={text} what={what ?? text} />
    </div>
  )
}

export type Tab = { href: string; text: string; count?: number | undefined }

/** Tabs are links: each can be shared, and opened beside the others. */
export function Tabs({ label, items }: { label: string; items: Tab[] }) {
  const here = place.value.path
  return (
    <nav class="tabs" aria-label={label}>
      {items.map(({ href, text, count }) => (
        <a key={href} href={href} aria-current={href === here ? 'page' : undefined}>
          {text}
          {count !== undefined && <span class="count">{count}</span>}
        </a>
      ))}
    </nav>
  )
}
