// The search dialog: links of the console and results of `GET /search`, by keyboard.
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { call, type Schemas } from '../kit/api.ts'
import { describeError } from '../kit/feedback.tsx'
import { Curl } from '../kit/panel.tsx'
import { go } from '../kit/router.tsx'
import { may } from '../kit/session.ts'
import { DeploymentState, DomainState } from '../kit/state.tsx'
import { links } from './links.ts'

type Hit = { href: string; kind: string; text: string; note?: preact.ComponentChildren }

const typingMs = 120
const minLength = 2

const searchOf = (q: string) => call('get', '/search', { params: { query: { q } } })

function hitsOf(found: Schemas['SearchResults']): Hit[] {
  const id = encodeURIComponent
  return [
    ...found.projects.map((it) => ({
      href: `/projects/${id(it.name)}`,
      kind: 'Project',
      text: it.name,
      note: it.repo,
    })),
    ...found.domains.map((it) => ({
      href: `/domains/${id(it.name)}`,
      kind: 'Domain',
      text: it.name,
      note: <DomainState of={it} />,
    })),
    ...found.deployments.map((it) => ({
      href: `/deployments/${id(it.id)}`,
      kind: 'Deployment',
      text: `${it.project} ${it.commit} ${it.ref}`,
      note: <DeploymentState of={it} />,
    })),
    ...found.tickets.map((it) => ({
      href: `/tickets/${id(it.id)}`,
      kind: 'Ticket',
      text: it.subject,
      note: it.status,
    })),
  ]
}

export default function Search({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const [text, setText] = useState('')
  const [found, setFound] = useState<Hit[]>([])
  const [message, setMessage] = useState('')
  const [selected, setSelected] = useState(0)
  const id = useId()
  const words = text.trim()
  const linkHits = links
    .filter(
      ({ scope, text: name }) => (scope === null || may(scope)) && name.toLowerCase().includes(words.toLowerCase()),
    )
    .map(({ href, text: name }): Hit => ({ href, kind: 'Go to', text: name }))
  const hits = [...(words.length < minLength ? [] : found), ...linkHits]
  const active = Math.min(selected, hits.length - 1)

  useEffect(() => dialog.current!.showModal(), [])
  useEffect(() => {
    setSelected(0)
    if (words.length < minLength) return setFound([])
    const controller = new AbortController()
    const timer = setTimeout(() => {
      searchOf(words)
        .send(controller.signal)
        .then(
          (answer) => {
            const all = hitsOf(answer)
            setFound(all)
            setMessage(all.length === 0 ? 'Nothing found.' : `${all.length} found.`)
          },
          (error) => controller.signal.aborted || setMessage(describeError(error).title),
        )
    }, typingMs)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [words])
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [active])

  function press(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step && hits.length > 0) {
      event.preventDefault()
      setSelected((active + step + hits.length) % hits.length)
    } else if (event.key === 'Enter' && hits[active]) {
      event.preventDefault()
      open(hits[active])
    }
  }
  function open(hit: Hit): void {
    close()
    go(hit.href)
  }
  return (
    <dialog ref={dialog} class="search" aria-label="Find anything" onClose={close}>
      <input
        type="text"
        role="combobox"
        aria-label="Find anything"
        aria-expanded="true"
        aria-controls={`${id}-hits`}
        aria-autocomplete="list"
        aria-activedescendant={hits.length > 0 ? `${id}-${active}` : undefined}
        placeholder="A project, domain, commit, ticket or page"
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={press}
      />
      <div ref={list} class="hits" id={`${id}-hits`} role="listbox" aria-label="Results">
        {hits.map((hit, index) => (
          <a
            key={hit.href}
            id={`${id}-${index}`}
            href={hit.href}
            tabIndex={-1}
            role="option"
            aria-selected={index === active}
            onPointerMove={() => setSelected(index)}
            onClick={close}
          >
            <span class="soft">{hit.kind}</span>
            <span>{hit.text}</span>
            <span class="soft right">{hit.note}</span>
          </a>
        ))}
      </div>
      <p class="soft" role="status">
        {words.length >= minLength ? message : 'Type at least two characters.'}
      </p>
      {words.length >= minLength && <Curl text={searchOf(words).curl!} />}
    </dialog>
  )
}
