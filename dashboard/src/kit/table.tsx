// Tables: a caption for screen readers, right-aligned numbers, columns that leave on a telephone, and "Load more".
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { List } from './data.ts'
import { Loaded, toastError } from './feedback.tsx'

export type Column<T> = {
  name: string
  cell(row: T): ComponentChildren
  /** Right-aligned, tabular figures. */
  num?: boolean
  /** Left out on narrow screens. */
  wide?: boolean
  /** Buttons: its heading is for screen readers alone. */
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

/** The table of a list that is read in pages. */
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

export function More({ of }: { of: Pick<List<unknown>, 'hasMore' | 'more'> }) {
  const [busy, wait] = useState(false)
  if (!of.hasMore) return null
  const read = () => {
    wait(true)
    of.more()
      .catch(toastError)
      .finally(() => wait(false))
  }
  return (
    <div class="more">
      <button type="button" class="quiet" disabled={busy} onClick={read}>
        Load more
      </button>
    </div>
  )
}
