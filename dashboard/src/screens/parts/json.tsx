// Readable JSON, and links from IDs to their screens.
import type { ComponentChildren } from 'preact'
import { Copy } from '../../kit/index.ts'

const screens: Record<string, string> = {
  dpl: 'deployments',
  tok: 'tokens',
  tkt: 'tickets',
  whk: 'webhooks',
}

/** The screen of an ID or of a domain. */
export function screenOf(subject: string, type: string): string | null {
  const screen = screens[subject.slice(0, 3)]
  if (screen && subject[3] === '_') return `/${screen}/${subject}`
  const [noun] = type.split('.')
  if ((noun === 'domain' || noun === 'dns') && !subject.includes('_')) {
    return `/${noun === 'dns' ? 'dns' : 'domains'}/${encodeURIComponent(subject)}`
  }
  return noun === 'member' || noun === 'session' ? '/members' : null
}

export function Json({ of, what }: { of: unknown; what: string }) {
  const text = JSON.stringify(of, null, 2)
  return (
    <div class="json">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard. */}
      <pre tabIndex={0}>{text.split('\n').flatMap(line)}</pre>
      <Copy text={text} what={what} />
    </div>
  )
}

/** Dims field names, so that the values stand out. */
function line(text: string, index: number): ComponentChildren[] {
  const [, name, value] = /^(\s*"(?:[^"\\]|\\.)*": )(.*)$/s.exec(text) ?? []
  const begin = index === 0 ? '' : '\n'
  return name === undefined ? [begin + text] : [begin, <span class="soft">{name}</span>, value]
}
