// The tables of a backup: copied out in pieces that fit into a tar, and copied in with triggers disabled.
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

// A tar entry starts with its size, and the size of a table is unknown until it is read, so we buffer pieces.
const pieceBytes = 4 << 20

export type Layout = Pick<Head, 'tables' | 'partitions' | 'sequences'>

/** Reads the layout of the database and locks the tables until the transaction ends. */
export async function readLayout({ db, client }: Connection): Promise<Layout> {
  const tables = inOrder(await readTables(db, {}))
  await client.query(lockTables(tables))
  return { tables, partitions: await readPartitions(db, {}), sequences: await readSequences(db, {}) }
}

/** Orders tables after those that they reference. */
export function inOrder(tables: (Table & { needs: readonly string[] })[]): { name: string; columns: string[] }[] {
  const left = new Map(tables.map((table) => [table.name, table]))
  const ordered: { name: string; columns: string[] }[] = []
  while (left.size > 0) {
    const next = [...left.values()].filter(({ needs }) => !needs.some((name) => left.has(name)))
    if (next.length === 0) throw new Error(`The tables ${[...left.keys()].join(', ')} reference each other in a cycle.`)
    for (const { name, columns } of next) {
      ordered.push({ name, columns: [...columns] })
      left.delete(name)
    }
  }
  return ordered
}

const pathOf = (table: string, piece: number) => `database/${table}/${String(piece).padStart(6, '0')}`
const tablePath = /^database\/([^/]+)\/\d{6,}$/

/** The table to which an entry belongs. */
export function tableOf(path: string): string | undefined {
  return tablePath.exec(path)?.[1]
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

/** Splits a stream into pieces of a few megabytes, each a list of chunks. */
export async function* inPieces(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer[]> {
  let chunks: Buffer[] = []
  let length = 0
  for await (const chunk of stream) {
    chunks.push(chunk)
    length += chunk.length
    if (length < pieceBytes) continue
    yield chunks
    chunks = []
    length = 0
  }
  if (length > 0) yield chunks
}

/**
 * Prepares the tables for loading: creates the partitions of the archive and disables triggers. Returns the names of
 * tables in the archive that are not ours.
 */
export async function prepareTables({ db, client }: Connection, { tables, partitions }: Layout): Promise<string[]> {
  const own = new Map((await readTables(db, {})).map(({ name, columns }) => [name, columns]))
  for (const { name, columns } of tables.filter(({ name }) => own.has(name))) {
    const unknown = columns.find((column) => !own.get(name)!.includes(column))
    if (unknown !== undefined) throw new BadArchive(`The archive has a column ${unknown} that ${name} does not have.`)
  }
  await client.query(emptyTables([...own.keys()]))
  const ownPartitions = partitions.filter(({ parent }) => own.has(parent))
  const invalid = ownPartitions.find(({ bound }) => !isBound(bound))
  if (invalid) throw new BadArchive(`The archive has a partition ${invalid.name} with an invalid bound.`)
  // Replace the partitions that the migrations created, because their bounds depend on the time.
  for (const { name, parent } of await readPartitions(db, {})) {
    if (ownPartitions.some((partition) => partition.parent === parent)) await client.query(dropTable(name))
  }
  for (const partition of ownPartitions) await client.query(createPartition(partition))
  for (const name of await allNames(db)) await client.query(setTriggers(name, false))
  return tables.filter(({ name }) => !own.has(name)).map(({ name }) => name)
}

/** Accepts only range bounds as PostgreSQL prints them, because the bound becomes part of a statement. */
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
