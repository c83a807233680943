// The certificates in service by host name, in a compact form.
import type { ServedCertificateRow, ServedCertificateState } from '../services/certificates/index.ts'

export type Served = {
  readonly id: string
  readonly names: readonly string[]
  /** PEM, outside the heap, so that ten thousand of them don't burden the garbage collector. */
  readonly chain: Buffer
  /** PEM, encrypted: a private key is decrypted only while its context is created. */
  readonly sealedKey: Buffer
  readonly notAfterMs: number
  /** Whether a context could be created from it; null until the first try. */
  usable: boolean | null
}

const parentOf = (name: string) => name.slice(name.indexOf('.'))

/** As clients check it: the exact name, or a wildcard for its first label. */
export function covers({ names }: Pick<Served, 'names'>, host: string): boolean {
  return names.includes(host) || names.includes(`*${parentOf(host)}`)
}

const none: ReadonlyMap<string, Served> = new Map()

export class CertificateTable {
  readonly #ownHosts: ReadonlySet<string>
  /** Of verified domains, by domain. */
  readonly #domains = new Map<string, Served>()
  /** The platform's own, under their first name and under each of their names. */
  readonly #platform = new Map<string, Served>()
  readonly #platformNames = new Map<string, Served>()

  constructor(ownHosts: ReadonlySet<string> = new Set()) {
    this.#ownHosts = ownHosts
  }

  get size(): number {
    return this.#domains.size + this.#platform.size
  }

  /** `host` in lower case, without port or trailing dot. */
  find(host: string): Served | undefined {
    // A platform host never shows the certificate of a domain that was attached before it became one.
    const domains = this.#ownHosts.has(host) ? none : this.#domains
    const exact = domains.get(host) ?? this.#platformNames.get(host)
    if (exact) return exact
    const wildcard = `*${parentOf(host)}`
    const above = domains.get(wildcard) ?? this.#platformNames.get(wildcard)
    if (above) return above
    // `www` is served with its domain if the certificate covers it.
    const domain = host.startsWith('www.') ? domains.get(host.slice(4)) : undefined
    return domain && covers(domain, host) ? domain : undefined
  }

  /** The names of the table that the states lack, and those with another certificate there. */
  differing(states: readonly ServedCertificateState[]): Set<string> {
    const differing = new Set([...this.#domains.keys(), ...this.#platform.keys()])
    for (const { name, platform, id } of states) {
      if ((platform ? this.#platform : this.#domains).get(name)?.id === id) differing.delete(name)
      else differing.add(name)
    }
    return differing
  }

  /** Everything in the table, as database rows. */
  *rows(): Generator<ServedCertificateRow> {
    for (const platform of [false, true]) {
      for (const [name, { id, names, chain, sealedKey, notAfterMs }] of platform ? this.#platform : this.#domains) {
        const notAfter = new Date(notAfterMs)
        yield { name, platform, id, names: [...names], chain: chain.toString('latin1'), key: sealedKey, notAfter }
      }
    }
  }

  /** Applies the rows read for `names`; names without a row are removed. */
  apply(names: readonly string[], rows: readonly ServedCertificateRow[]): void {
    const found = new Map<string, ServedCertificateRow>()
    const own = new Map<string, ServedCertificateRow>()
    for (const row of rows) (row.platform ? own : found).set(row.name, row)
    for (const name of names) {
      const row = found.get(name)
      // Never a certificate that doesn't cover the name, whatever the row says.
      if (row && covers(row, row.name)) this.#domains.set(name, entryOf(row, this.#domains.get(name)))
      else this.#domains.delete(name)
      this.#putPlatform(name, own.get(name))
    }
  }

  #putPlatform(name: string, row: ServedCertificateRow | undefined): void {
    const before = this.#platform.get(name)
    for (const other of before?.names ?? []) {
      if (this.#platformNames.get(other) === before) this.#platformNames.delete(other)
    }
    if (!row) return void this.#platform.delete(name)
    const entry = entryOf(row, before)
    this.#platform.set(name, entry)
    for (const other of entry.names) this.#platformNames.set(other, entry)
  }
}

function entryOf(row: ServedCertificateRow, before: Served | undefined): Served {
  if (before?.id === row.id) return before
  const { id, names, chain, key, notAfter } = row
  return { id, names, chain: copy(chain), sealedKey: copy(key), notAfterMs: notAfter.getTime(), usable: null }
}

// A buffer of the exact size: a slice would keep the whole block of Node's buffer pool.
function copy(bytes: string | Uint8Array): Buffer {
  const source = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
  const buffer = Buffer.allocUnsafeSlow(source.length)
  buffer.set(source)
  return buffer
}
