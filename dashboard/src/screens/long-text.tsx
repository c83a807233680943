// A value that may be of any length: a long one shows its beginning, and opens.
import { num } from '../kit/index.ts'

const shortest = 300
const beginning = 120

export function LongText({ text }: { text: string }) {
  if (text.length <= shortest) return <code class="lines">{text}</code>
  return (
    <details>
      <summary>
        <code>{text.slice(0, beginning)}…</code> <span class="soft">{num(text.length)} characters</span>
      </summary>
      <code class="lines">{text}</code>
    </details>
  )
}
