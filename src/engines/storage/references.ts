// Which blobs the manifests name, in a fixed amount of memory for any number of them.
import { randomBytes } from 'node:crypto'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'

export type References = {
  add(hash: string): void
  /** Never false for a hash that was added. Rarely true for another one; the next set, with other numbers, tells. */
  has(hash: string): boolean
}

// A Bloom filter of 8 MB: of a million hashes one in ten million is wrong, of ten million one in thirty.
const bitsLog2 = 26
const probes = 7

/** Hashes are random already, so each probe takes four of their bytes, mixed with numbers that nobody can know. */
export function createReferences(): References {
  const bits = new Uint32Array(2 ** (bitsLog2 - 5))
  const mix = new Uint32Array(new Uint8Array(randomBytes(8 * probes)).buffer)
  const bitOf = (hash: string, probe: number) => {
    const word = Number.parseInt(hash.slice(8 * probe, 8 * probe + 8), 16)
    return Math.imul(word ^ mix[2 * probe]!, mix[2 * probe + 1]! | 1) >>> (32 - bitsLog2)
  }
  return {
    add(hash) {
      for (let probe = 0; probe < probes; probe++) {
        const bit = bitOf(hash, probe)
        bits[bit >>> 5]! |= 1 << (bit & 31)
      }
    },
    has(hash) {
      for (let probe = 0; probe < probes; probe++) {
        const bit = bitOf(hash, probe)
        if ((bits[bit >>> 5]! & (1 << (bit & 31))) === 0) return false
      }
      return true
    },
  }
}

// Within a name of a file, JSON has no bare quote, so only the fields match.
const hashField = /"hash":"([0-9a-f]{64})"/g
const fieldLength = '"hash":""'.length + 64

/**
 * Reads all manifests in pieces, and calls `onHash` for every blob of them. Reports those that are cut off. Rejects if
 * one cannot be read, because what it names is not known then.
 */
export async function readManifests(
  { inventory, report }: Pick<Artifacts, 'inventory' | 'report'>,
  signal: AbortSignal,
  onHash: (hash: string, deploymentId: string) => void,
): Promise<void> {
  for await (const { id, text } of inventory.manifests()) {
    signal.throwIfAborted()
    const whole = await readHashes(text(), (hash) => onHash(hash, id))
    if (!whole) await report(id)
  }
}

/** False if the manifest has no end. */
async function readHashes(pieces: AsyncIterable<string>, onHash: (hash: string) => void): Promise<boolean> {
  let rest = ''
  try {
    for await (const piece of pieces) {
      const text = rest + piece
      let end = 0
      for (const match of text.matchAll(hashField)) {
        onHash(match[1]!)
        end = match.index + fieldLength
      }
      rest = text.slice(Math.max(end, text.length - fieldLength))
    }
  } catch (error) {
    // Removed meanwhile.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true
    throw error
  }
  return rest.endsWith('}')
}
