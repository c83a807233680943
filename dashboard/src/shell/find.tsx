// Opens the search: by a button in the navigation, or Ctrl K anywhere.
import { signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { toastError } from '../kit/feedback.tsx'

const shown = signal<ComponentType<{ close: () => void }> | null>(null)

export function openSearch(): void {
  import('../screens/all.ts').then(({ Search }) => {
    shown.value = Search
  }, toastError)
}

export function startSearchKey(): void {
  addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
    event.preventDefault()
    if (!shown.peek()) openSearch()
  })
}

export function SearchDialog() {
  const Search = shown.value
  if (!Search) return null
  return (
    <Search
      close={() => {
        shown.value = null
      }}
    />
  )
}

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent)

export function FindButton() {
  return (
    <button type="button" class="find" onClick={openSearch}>
      Find anything <kbd>{isMac ? '⌘ K' : 'Ctrl K'}</kbd>
    </button>
  )
}
