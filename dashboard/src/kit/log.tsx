// Logs: renders many lines, follows the end, and highlights a search.

import { useLayoutEffect, useRef } from 'preact/hooks'
import { memo } from './memo.ts'
import { clockOf, utc } from './time.tsx'

export type LogRow = { id: string | number; at: string; step?: string | null; text: string; bad?: boolean }

type LogProps = {
  label: string
  rows: readonly LogRow[] /** Shows only lines that contain it. */
  find?: string
  empty?: string
}

// Offscreen blocks skip layout, and unchanged blocks skip rendering when lines are added.
const blockRows = 200

export function Log({ label, rows, find = '', empty = 'No output yet.' }: LogProps) {
  const element = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  const query = find.toLowerCase()
  const shown = query ? rows.filter(({ text }) => text.toLowerCase().includes(query)) : rows
  useLayoutEffect(() => {
    const log = element.current
    if (log && atEnd.current && !query) log.scrollTop = log.scrollHeight
  }, [shown.length, query])
  const blocks: LogRow[][] = []
  for (let from = 0; from < shown.length; from += blockRows) blocks.push(shown.slice(from, from + blockRows))
  return (
    <div
      ref={element}
      class="log"
      role="log"
      aria-label={label}
      aria-live="off"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard.
      tabIndex={0}
      onScroll={({ currentTarget: log }) => {
        atEnd.current = log.scrollHeight - log.scrollTop - log.clientHeight < 24
      }}
    >
      {blocks.map((block) => (
        <Block key={block[0]!.id} rows={block} find={find} />
      ))}
      {shown.length === 0 && <p class="soft">{query ? 'No matching lines.' : empty}</p>}
    </div>
  )
}

type BlockProps = { rows: LogRow[]; find: string }

const Block = memo(
  function Block({ rows, find }: BlockProps) {
    return (
      <ol>
        {rows.map(({ id, at, step, text, bad }) => (
          <li key={id} class={bad ? 'bad' : ''}>
            <time dateTime={at} title={utc(at)}>
              {clockOf(at)}
            </time>
            <span>{step}</span>
            <span>
              <Marked text={text} find={find} />
            </span>
          </li>
        ))}
      </ol>
    )
  },
  (before: BlockProps, after: BlockProps) =>
    before.find === after.find &&
    before.rows.length === after.rows.length &&
    before.rows[0]!.id === after.rows[0]!.id &&
    before.rows.at(-1)!.id === after.rows.at(-1)!.id,
)

function Marked({ text, find }: { text: string; find: string }) {
  if (!find) return <>{text}</>
  const parts: (string | preact.JSX.Element)[] = []
  const lower = text.toLowerCase()
  let from = 0
  for (let at = lower.indexOf(find.toLowerCase()); at >= 0; at = lower.indexOf(find.toLowerCase(), from)) {
    parts.push(text.slice(from, at), <mark>{text.slice(at, at + find.length)}</mark>)
    from = at + find.length
  }
  return (
    <>
      {parts}
      {text.slice(from)}
    </>
  )
}
