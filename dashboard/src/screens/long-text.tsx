// A value of any length: a long one shows its previewLength and can be expanded.
import { num } from '../kit/index.ts'

const maxShown = 300
const previewLength = 120

export function LongText({ text }: { text: string }) {
  if (text.length <= maxShown) return <code class="lines">{text}</code>
  return (
    <details>
      <summary>
        <code>{text.slice(0, previewLength)}…</code> <span class="soft">{num(text.length)} characters</span>
      </summary>
      <code class="lines">{text}</code>
    </details>
  )
}
