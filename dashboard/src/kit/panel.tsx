// The parts of a screen: heading, panels with their curl, tabs, copy buttons.
import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { Commands, curlsOf, useCommands } from './act.tsx'
import type { Call } from './calls.ts'
import { toast } from './feedback.tsx'
import { currentUrl } from './router.tsx'

type TopProps = {
  title: string
  /** Breadcrumb links. */
  trail?: ComponentChildren
  state?: ComponentChildren
  /** Buttons. */
  children?: ComponentChildren
}

/** The heading of a screen. */
export function Top({ title, trail, state, children }: TopProps) {
  const [open, setOpen] = useState(false)
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
            {curl && <CurlButton open={open} toggle={() => setOpen(!open)} />}
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
  /** A badge next to the title, such as a State. */
  state?: ComponentChildren
  /** Soft text on the right. */
  note?: ComponentChildren
  actions?: ComponentChildren
  /** The call that the panel shows. */
  call?: Call<unknown> | null
  /** Adds padding; a table or a log needs none. */
  pad?: boolean
  children?: ComponentChildren
}

/** A section with a title, actions and content. */
export function Panel({ title, state, note, actions, call, pad = false, children }: PanelProps) {
  const [open, setOpen] = useState(false)
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
              {curl && <CurlButton open={open} toggle={() => setOpen(!open)} />}
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

/** The curl command, with a copy button. */
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
    toast(`Your browser blocks copying. Select the ${what} and copy it yourself.`, true)
  }
}

/** `what` is for screen readers: "Copy the command". */
export function Copy({ text, what = 'text' }: { text: string; what?: string }) {
  return (
    <button type="button" class="quiet" aria-label={`Copy the ${what}`} onClick={() => void copy(text, what)}>
      Copy
    </button>
  )
}

/** A text with a copy button. */
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

/** Tabs are links, so that each can be shared and opened in another window. */
export function Tabs({ label, items }: { label: string; items: Tab[] }) {
  const here = currentUrl.value.path
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
