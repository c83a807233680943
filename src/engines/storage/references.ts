// Collects the blobs that manifests reference, in a fixed amount of memory.
import { randomBytes } from 'node:crypto'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'

export type References = {
  add(hash: string): void
  /** Never false for an added hash. Rarely true for others, and then differently in the next set. */
  has(hash: string): boolean
}

// A Bloom filter of 8 MB: with a million hashes one lookup in ten million is wrong, with ten million one in thirty.
const bitsLog2 = 26
const probes = 7

/** Hashes are already random, so each probe uses four of their bytes, mixed with secret random numbers. */
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

// Quotes in file names are escaped in JSON, so only the fields match.
const hashField = /"hash":"([0-9a-f]{64})"/g
const fieldLength = '"hash":""'.length + 64

/**
 * Reads all manifests in pieces and calls `onHash` for every blob. Reports truncated ones. Rejects if one can't be read,
 * because its references are unknown.
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

/** Returns false if the manifest is truncated. */
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
    // The manifest was just removed.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true
    throw error
  }
  return rest.endsWith('}')
}
