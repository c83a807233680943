// Searches configuration files that are code, without running them.

/** Removes comments, so that commented-out settings aren't found. Keeps strings. Takes linear time. */
export function withoutComments(code: string): string {
  let result = ''
  let quote = ''
  for (let at = 0; at < code.length; at++) {
    const char = code[at]!
    if (quote !== '') {
      result += char
      if (char === '\\') result += code[++at] ?? ''
      else if (char === quote || (char === '\n' && quote !== '`')) quote = ''
    } else if (char === '/' && code[at + 1] === '/') {
      const end = code.indexOf('\n', at)
      if (end < 0) break
      at = end - 1
    } else if (char === '/' && code[at + 1] === '*') {
      const end = code.indexOf('*/', at + 2)
      if (end < 0) break
      at = end + 1
      result += ' '
    } else {
      if (char === '"' || char === "'" || char === '`') quote = char
      result += char
    }
  }
  return result
}

/** Whether a setting may have this value, including in expressions such as `output: isSite ? 'export' : undefined`. */
export const mayBe = (config: string, name: string, value: string): boolean =>
  new RegExp(`\\b${name}["']?\\s{0,20}[:=][^,;\\n}]{0,200}["'\`]${value}["'\`]`).test(config)

/** Whether a boolean setting has this value. */
export const isSet = (config: string, name: string, value: boolean): boolean =>
  new RegExp(`\\b${name}["']?\\s{0,20}:\\s{0,20}${value}\\b`).test(config)

/** The value of a setting that names a folder within the root directory, else null. */
export function folderOf(config: string, name: string): string | null {
  const found = new RegExp(`\\b${name}["']?\\s{0,20}:\\s{0,20}["'\`]([^"'\`\\n]{1,200})["'\`]`).exec(config)?.[1]
  return found === undefined ? null : plainFolder(found)
}

/** Turns `./dist/` into `dist`; null for paths outside the root directory. */
export function plainFolder(path: string): string | null {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  const isPlain =
    !path.startsWith('/') &&
    parts.length > 0 &&
    !parts.includes('.git') &&
    parts.every((part) => /^[\w@+ -][\w.@+ -]*$|^\.\w[\w.-]*$/.test(part))
  return isPlain ? parts.join('/') : null
}
