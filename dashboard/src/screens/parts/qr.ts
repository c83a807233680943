// QR codes (ISO 18004) in byte mode, correction level L, versions 1 to 10: enough for an otpauth URI.

/** Level L, by version: correction codewords per block. */
const corrections = [0, 7, 10, 15, 20, 26, 18, 20, 24, 30, 18]
const blockCounts = [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4]
const codewords = [0, 26, 44, 70, 100, 134, 172, 196, 242, 292, 346]
const aligned = [[], [], [18], [22], [26], [30], [34], [22, 38], [24, 42], [26, 46], [28, 50]]

/** The dark modules by row; null if the text is too long. */
export function qrOf(text: string): boolean[][] | null {
  const bytes = new TextEncoder().encode(text)
  for (let version = 1; version <= 10; version++) {
    const capacity = codewords[version]! - corrections[version]! * blockCounts[version]!
    const header = version < 10 ? 12 : 20
    if (bytes.length * 8 + header <= capacity * 8)
      return draw(version, correct(version, encode(bytes, version, capacity)))
  }
  return null
}

function encode(bytes: Uint8Array, version: number, capacity: number): number[] {
  const bits: number[] = []
  const push = (value: number, count: number) => {
    for (let at = count - 1; at >= 0; at--) bits.push((value >> at) & 1)
  }
  push(4, 4)
  push(bytes.length, version < 10 ? 8 : 16)
  for (const byte of bytes) push(byte, 8)
  push(0, Math.min(4, capacity * 8 - bits.length))
  while (bits.length % 8) bits.push(0)
  for (let pad = 0xec; bits.length < capacity * 8; pad ^= 0xec ^ 0x11) push(pad, 8)
  return Array.from({ length: capacity }, (_, at) =>
    bits.slice(at * 8, at * 8 + 8).reduce((sum, bit) => sum * 2 + bit, 0),
  )
}

/** Multiplies in GF(256). */
function multiply(x: number, y: number): number {
  let product = 0
  for (let at = 7; at >= 0; at--) product = (product << 1) ^ ((product >> 7) * 0x11d) ^ (((y >> at) & 1) * x)
  return product
}

/** Reed-Solomon: the remainder of the data divided by the generator polynomial. */
function remainderOf(data: number[], degree: number): number[] {
  const divisor = [...Array(degree - 1).fill(0), 1]
  for (let at = 0, root = 1; at < degree; at++, root = multiply(root, 2)) {
    for (let term = 0; term < degree; term++) {
      divisor[term] = multiply(divisor[term], root) ^ (divisor[term + 1] ?? 0)
    }
  }
  const rest: number[] = Array(degree).fill(0)
  for (const byte of data) {
    const factor = byte ^ rest.shift()!
    rest.push(0)
    for (let term = 0; term < degree; term++) rest[term]! ^= multiply(divisor[term], factor)
  }
  return rest
}

/** Interleaves the data and correction codewords of the blocks. */
function correct(version: number, data: number[]): number[] {
  const count = blockCounts[version]!
  const short = Math.floor(data.length / count)
  const longer = data.length % count
  let from = 0
  const blocks = Array.from({ length: count }, (_, at) => {
    const block = data.slice(from, from + short + (at >= count - longer ? 1 : 0))
    from += block.length
    return block
  })
  const corrected = blocks.map((block) => remainderOf(block, corrections[version]!))
  const interleave = (parts: number[][]) =>
    Array.from({ length: Math.max(...parts.map(({ length }) => length)) }, (_, at) => parts.map((part) => part[at]))
      .flat()
      .filter((byte) => byte !== undefined)
  return [...interleave(blocks), ...interleave(corrected)]
}

function draw(version: number, data: number[]): boolean[][] {
  const size = version * 4 + 17
  const dark = Array.from({ length: size }, () => Array<boolean>(size).fill(false))
  const fixed = Array.from({ length: size }, () => Array<boolean>(size).fill(false))
  const set = (x: number, y: number, on: boolean) => {
    if (x < 0 || y < 0 || x >= size || y >= size) return
    dark[y]![x] = on
    fixed[y]![x] = true
  }
  const square = (cx: number, cy: number, reach: number, isOn: (ring: number) => boolean) => {
    for (let y = -reach; y <= reach; y++) {
      for (let x = -reach; x <= reach; x++) set(cx + x, cy + y, isOn(Math.max(Math.abs(x), Math.abs(y))))
    }
  }
  for (let at = 0; at < size; at++) {
    set(6, at, at % 2 === 0)
    set(at, 6, at % 2 === 0)
  }
  for (const [x, y] of [
    [3, 3],
    [size - 4, 3],
    [3, size - 4],
  ] as const)
    square(x, y, 4, (ring) => ring !== 2 && ring !== 4)
  const centres = version > 1 ? [6, ...aligned[version]!] : []
  const last = centres.length - 1
  for (const [i, x] of centres.entries()) {
    for (const [j, y] of centres.entries()) {
      if ((i === 0 && (j === 0 || j === last)) || (i === last && j === 0)) continue
      square(x, y, 2, (ring) => ring !== 1)
    }
  }
  writeFormat(size, set)
  if (version >= 7) writeVersion(version, size, set)
  fill(dark, fixed, data)
  return dark
}

type Set = (x: number, y: number, on: boolean) => void

/** Level L and mask 0. */
function writeFormat(size: number, set: Set): void {
  const bits = 0b111011111000100
  const bit = (at: number) => ((bits >> at) & 1) === 1
  for (let at = 0; at < 15; at++) {
    const along = at < 6 ? at : at < 8 ? at + 1 : size - 15 + at
    set(8, along, bit(at))
    const across = at < 8 ? size - 1 - at : at === 8 ? 7 : 14 - at
    set(across, 8, bit(at))
  }
  set(8, size - 8, true)
}

function writeVersion(version: number, size: number, set: Set): void {
  let rest = version
  for (let at = 0; at < 12; at++) rest = (rest << 1) ^ ((rest >> 11) * 0x1f25)
  const bits = (version << 12) | rest
  for (let at = 0; at < 18; at++) {
    const [far, near] = [size - 11 + (at % 3), Math.floor(at / 3)]
    const on = ((bits >> at) & 1) === 1
    set(far, near, on)
    set(near, far, on)
  }
}

/** Fills columns of two from the right, alternately up and down, applying the mask. */
function fill(dark: boolean[][], fixed: boolean[][], data: number[]): void {
  const size = dark.length
  let at = 0
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5
    for (let step = 0; step < size; step++) {
      for (const x of [right, right - 1]) {
        const y = ((right + 1) & 2) === 0 ? size - 1 - step : step
        if (fixed[y]![x]) continue
        const on = ((data[at >> 3] ?? 0) >> (7 - (at & 7))) & 1
        dark[y]![x] = (on === 1) !== ((x + y) % 2 === 0)
        at++
      }
    }
  }
}
