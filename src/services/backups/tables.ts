// The tables of a backup: copied out in pieces that a tar can hold, and copied in before any trigger or reader sees them.
import { pipeline } from 'node:stream/promises'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import type { TreeEntry } from '../../platform/artifacts/trees.ts'
import type { Connection, Db } from '../../platform/database/database.ts'
import { BadArchive } from '../../platform/files/tar.ts'
import type { Head } from './archive.ts'
import {
  copyIn,
  copyOut,
  createPartition,
  dropTable,
  emptyTables,
  lockTables,
  readPartitions,
  readSequences,
  readTables,
  setSequence,
  setTriggers,
  type Table,
} from './statements.ts'

// The size of an entry comes before its content, and nobody knows the size of a table before it is read.
const pieceBytes = 4 << 20

export type Layout = Pick<Head, 'tables' | 'partitions' | 'sequences'>

/** What the database consists of; the tables stay as they are until the transaction of the connection ends. */
export async function readLayout({ db, client }: Connection): Promise<Layout> {
  const tables = inOrder(await readTables(db, {}))
  await client.query(lockTables(tables))
  return { tables, partitions: await readPartitions(db, {}), sequences: await readSequences(db, {}) }
}

/** Tables after those that their rows refer to. */
export function inOrder(tables: (Table & { needs: readonly string[] })[]): { name: string; columns: string[] }[] {
  const left = new Map(tables.map((table) => [table.name, table]))
  const ordered: { name: string; columns: string[] }[] = []
  while (left.size > 0) {
    const next = [...left.values()].filter(({ needs }) => !needs.some((name) => left.has(name)))
    if (next.length === 0) throw new Error(`The tables ${[...left.keys()].join(', ')} refer to each other in a circle.`)
    for (const { name, columns } of next) {
      ordered.push({ name, columns: [...columns] })
      left.delete(name)
    }
  }
  return ordered
}

const pathOf = (table: string, piece: number) => `database/${table}/${String(piece).padStart(6, '0')}`
const ofTable = /^database\/([^/]+)\/\d{6,}$/

/** The table that an entry is a piece of. */
export function tableOf(path: string): string | undefined {
  return ofTable.exec(path)?.[1]
}

export async function* readRows({ client }: Connection, tables: readonly Table[]): AsyncGenerator<TreeEntry> {
  for (const table of tables) {
    let piece = 0
    for await (const content of inPieces(client.query(copyTo(copyOut(table))))) {
      const size = content.reduce((sum, { length }) => sum + length, 0)
      yield { kind: 'file', path: pathOf(table.name, piece++), mode: 0o600, size, content }
    }
  }
}

/** A stream in pieces of some megabytes, each as the chunks that came. */
export async function* inPieces(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer[]> {
  let held: Buffer[] = []
  let length = 0
  for await (const chunk of stream) {
    held.push(chunk)
    length += chunk.length
    if (length < pieceBytes) continue
    yield held
    held = []
    length = 0
  }
  if (length > 0) yield held
}

/**
 * Makes the tables ready for rows: with the partitions of the archive, and no trigger. Returns the names of tables that
 * somebody else made beside ours.
 */
export async function prepareTables({ db, client }: Connection, { tables, partitions }: Layout): Promise<string[]> {
  const known = new Map((await readTables(db, {})).map(({ name, columns }) => [name, columns]))
  const ours = tables.filter(({ name }) => known.has(name))
  for (const { name, columns } of ours) {
    const unknown = columns.find((column) => !known.get(name)!.includes(column))
    if (unknown !== undefined) throw new BadArchive(`The archive has a column ${unknown} that ${name} does not have.`)
  }
  await client.query(emptyTables([...known.keys()]))
  const wanted = partitions.filter(({ parent }) => known.has(parent))
  const unfit = wanted.find(({ bound }) => !isBound(bound))
  if (unfit) throw new BadArchive(`The archive has a partition ${unfit.name} that does not fit.`)
  // Instead of those that the migrations made, whose bounds depend on the time.
  for (const { name, parent } of await readPartitions(db, {})) {
    if (wanted.some((partition) => partition.parent === parent)) await client.query(dropTable(name))
  }
  for (const partition of wanted) await client.query(createPartition(partition))
  for (const name of await allNames(db)) await client.query(setTriggers(name, false))
  return tables.filter(({ name }) => !known.has(name)).map(({ name }) => name)
}

/** As PostgreSQL writes the bounds of a range; it stands in a statement, so nothing else is accepted. */
function isBound(bound: string): boolean {
  return /^(DEFAULT|FOR VALUES FROM \(('[\w :.+-]+'|MINVALUE)\) TO \(('[\w :.+-]+'|MAXVALUE)\))$/.test(bound)
}

export async function writeRows({ client }: Connection, table: Table, rows: AsyncIterable<Buffer>): Promise<void> {
  await pipeline(rows, client.query(copyFrom(copyIn(table))))
}

export async function finishTables({ db, client }: Connection, { sequences }: Layout): Promise<void> {
  for (const sequence of sequences) await setSequence(db, sequence)
  for (const name of await allNames(db)) await client.query(setTriggers(name, true))
}

async function allNames(db: Db): Promise<string[]> {
  return [...(await readTables(db, {})), ...(await readPartitions(db, {}))].map(({ name }) => name)
}
