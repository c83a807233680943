// Versions of zones as messages. Each is encoded once, in small pieces and only as far as needed, for all concurrent
// transfers of it, and dropped when the last of them ends.
import { turn } from '../../../platform/pauses.ts'
import { createEncoder, type Encoder, type Template } from '../answer/encode.ts'
import { encodeSome, messageOctets, minOctets } from '../answer/messages.ts'
import type { OwnedSet } from '../zones/lookup.ts'

/** A message without id, question and signature. */
export type ImageMessage = { template: Template; records: number }

/** Identifies an image. `from` is the serial at which its changes start; null for a whole zone. */
export type ImageOf = { version: unknown; origin: string; from: number | null; records(): Iterable<OwnedSet> }

// Records of a signed zone take about half a millisecond to look up, and no query waits for much more.
const recordsInAPiece = 20

class Image {
  readonly messages: ImageMessage[] = []
  readonly readers = new Set<{ signal: AbortSignal | undefined }>()
  readonly #encoder: Encoder
  readonly #origin: string
  readonly #records: Iterator<OwnedSet>
  /** Looked up, but in no message yet. */
  #pending: OwnedSet[] = []
  #isDone = false
  #running: Promise<void> | null = null

  constructor(encoder: Encoder, { origin, records }: ImageOf) {
    this.#encoder = encoder
    this.#origin = origin
    this.#records = records()[Symbol.iterator]()
  }

  /** Null after the last one, and for a reader that is gone. */
  async message(index: number): Promise<ImageMessage | null> {
    while (index >= this.messages.length && this.#isWanted() && !this.#isEnded()) {
      this.#running ??= this.#encode().finally(() => {
        this.#running = null
      })
      await this.#running
    }
    return this.messages[index] ?? null
  }

  /** Frees the memory at once, because garbage collection may be minutes away. The image must not be read any more. */
  discard(): void {
    for (const { template } of this.messages.splice(0)) (template.octets.buffer as ArrayBuffer).transfer(0)
  }

  #isWanted(): boolean {
    for (const { signal } of this.readers) if (!signal?.aborted) return true
    return false
  }

  #isEnded = () => this.#isDone && this.#pending.length === 0

  /** Encodes the next message, unless no reader remains. */
  async #encode(): Promise<void> {
    let octets = minOctets(this.#pending)
    while (octets < messageOctets && !this.#isDone) {
      const first = this.#pending.length
      this.#take()
      octets += minOctets(this.#pending.slice(first))
      await turn()
      if (!this.#isWanted()) return
    }
    const { template, sets, records } = encodeSome(this.#encoder, this.#origin, this.#pending)
    this.#pending = this.#pending.slice(sets)
    if (records > 0) this.messages.push({ template, records })
  }

  #take(): void {
    for (let count = 0; count < recordsInAPiece && !this.#isDone; count++) {
      const next = this.#records.next()
      if (next.done) this.#isDone = true
      else this.#pending.push(next.value)
    }
  }
}

export function createImages() {
  const encoder = createEncoder()
  const images = new Map<unknown, Map<number | null, Image>>()

  function imageOf(wanted: ImageOf): Image {
    const ofVersion = images.get(wanted.version) ?? new Map<number | null, Image>()
    const image = ofVersion.get(wanted.from) ?? new Image(encoder, wanted)
    images.set(wanted.version, ofVersion.set(wanted.from, image))
    return image
  }

  function drop({ version, from }: ImageOf): void {
    const ofVersion = images.get(version)
    ofVersion?.delete(from)
    if (ofVersion?.size === 0) images.delete(version)
  }

  return {
    /** How many are in memory. */
    get size() {
      return images.size
    },

    /** The messages, until the signal is aborted. */
    async *read(wanted: ImageOf, signal: AbortSignal | undefined): AsyncGenerator<ImageMessage> {
      const image = imageOf(wanted)
      const reader = { signal }
      image.readers.add(reader)
      try {
        for (let index = 0; !signal?.aborted; index++) {
          const message = await image.message(index)
          if (!message) return
          yield message
          // An existing message takes no time, but other work must get its turn.
          await turn()
        }
      } finally {
        image.readers.delete(reader)
        if (image.readers.size === 0) {
          drop(wanted)
          image.discard()
        }
      }
    },
  }
}

export type Images = ReturnType<typeof createImages>
