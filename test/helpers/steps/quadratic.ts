// Quadratic work in the forms that the step counter must detect.

export const byExpression = (size: number): boolean => /\s+$/.test(`${' '.repeat(size)}x`)

export const byChoices = (size: number): boolean => /^(?:a|b)*(?:a|b)*c/.test('ab'.repeat(size))

export const byLoop = (size: number): number => {
  let count = 0
  for (let i = 0; i < size; i++) for (let j = 0; j < i; j++) count++
  return count
}

export const byCallback = (list: readonly number[]): number[] =>
  list.filter((one) => list.find((other) => other === one))

export const bySpread = (size: number): number[] => {
  let list: number[] = []
  for (let i = 0; i < size; i++) list = [...list, i]
  return list
}

export const bySearch = (size: number): number => {
  const text = 'a'.repeat(size)
  let count = 0
  for (let i = 0; i < size; i++) if (text.indexOf('b', i) < 0) count++
  return count
}

export const byJoin = (size: number): Buffer => {
  let whole = Buffer.alloc(0)
  for (let i = 0; i < size; i++) whole = Buffer.concat([whole, Buffer.from('a')])
  return whole
}
