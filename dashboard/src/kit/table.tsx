// Tables: captions for screen readers, right-aligned numbers, columns hidden on phones, and paging.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { List } from './data.ts'
import { Empty, Loaded, toastError } from './feedback.tsx'
import { Panel, Top } from './panel.tsx'
import { currentUrl } from './router.tsx'
import { may } from './session.ts'

export type Column<T> = {
  name: string
  cell(row: T): ComponentChildren
  /** Right-aligned, tabular figures. */
  num?: boolean
  /** Hidden on narrow screens. */
  wide?: boolean
  /** Buttons; the heading is only for screen readers. */
  actions?: boolean
}

type TableProps<T> = {
  /** For screen readers. */
  label: string
  columns: Column<T>[]
  rows: readonly T[]
  keyOf(row: T): string
  empty?: ComponentChildren
}

export function Table<T>({ label, columns, rows, keyOf, empty }: TableProps<T>) {
  if (rows.length === 0 && empty) return <>{empty}</>
  const kind = ({ num, wide, actions }: Column<T>) =>
    [num && 'num', wide && 'wide', actions && 'actions'].filter(Boolean).join(' ')
  return (
    <table>
      <caption class="unseen">{label}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.name} scope="col" class={kind(column)}>
              {column.actions ? <span class="unseen">{column.name}</span> : column.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column) => (
              <td key={column.name} class={kind(column)}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

type ListTableProps<T, I> = Omit<TableProps<I>, 'rows'> & { of: List<T> }

/** The table of a list in pages. */
export function ListTable<T, I>({ of, ...table }: ListTableProps<T, I>) {
  return (
    <Loaded of={of}>
      {() => (
        <>
          <Table {...table} rows={(of.items ?? []) as unknown as I[]} />
          <More of={of} />
        </>
      )}
    </Loaded>
  )
}

type ListPageProps<T, I> = Omit<ListTableProps<T, I>, 'label' | 'empty'> & {
  title: string
  /** The title of the panel. */
  panel: string
  note?: string
  /** The button that creates one, for people with the scope. */
  create?: { text: string; scope: string; open(): void }
  filters?: ComponentChildren
  isFiltered?: boolean
  /** Shown if the list is empty. */
  empty: { title: string; text: ComponentChildren }
}

/** A list screen: a create button, filters, and the table or the next step. */
export function ListPage<T, I>({
  title,
  panel,
  note,
  create,
  filters,
  isFiltered,
  empty,
  ...table
}: ListPageProps<T, I>) {
  const button = create && may(create.scope) && (
    <button type="button" class="primary" onClick={create.open}>
      {create.text}
    </button>
  )
  const none = isFiltered ? (
    <Empty title="No matches">
      <p>
        Change a filter, or <a href={currentUrl.value.path}>show everything</a>.
      </p>
    </Empty>
  ) : (
    <Empty title={empty.title}>
      <p>{empty.text}</p>
      {button}
    </Empty>
  )
  return (
    <>
      <Top title={title}>{button}</Top>
      <Panel title={panel} note={note} call={table.of.call}>
        {filters}
        <ListTable {...table} label={title} empty={none} />
      </Panel>
    </>
  )
}

export function More({ of }: { of: Pick<List<unknown>, 'hasMore' | 'more'> }) {
  const [busy, setBusy] = useState(false)
  if (!of.hasMore) return null
  const read = () => {
    setBusy(true)
    of.more()
      .catch(toastError)
      .finally(() => setBusy(false))
  }
  return (
    <div class="more">
      <button type="button" class="quiet" disabled={busy} onClick={read}>
        Load more
      </button>
    </div>
  )
}
