// The text of a configuration file that is code: nothing of it is run, only searched.

/** Without its comments, so that a setting that is commented out is not found; strings stay. Takes linear time. */
export function withoutComments(code: string): string {
  let kept = ''
  let quote = ''
  for (let at = 0; at < code.length; at++) {
    const char = code[at]!
    if (quote !== '') {
      kept += char
      if (char === '\\') kept += code[++at] ?? ''
      else if (char === quote || (char === '\n' && quote !== '`')) quote = ''
    } else if (char === '/' && code[at + 1] === '/') {
      const end = code.indexOf('\n', at)
      if (end < 0) break
      at = end - 1
    } else if (char === '/' && code[at + 1] === '*') {
      const end = code.indexOf('*/', at + 2)
      if (end < 0) break
      at = end + 1
      kept += ' '
    } else {
      if (char === '"' || char === "'" || char === '`') quote = char
      kept += char
    }
  }
  return kept
}

/** Whether a setting may have this text, also as one of two choices: `output: isSite ? 'export' : undefined`. */
export const mayBe = (config: string, name: string, value: string): boolean =>
  new RegExp(`\\b${name}["']?\\s{0,20}[:=][^,;\\n}]{0,200}["'\`]${value}["'\`]`).test(config)

/** Whether a setting is true or false. */
export const isSet = (config: string, name: string, value: boolean): boolean =>
  new RegExp(`\\b${name}["']?\\s{0,20}:\\s{0,20}${value}\\b`).test(config)

/** The text of a setting that names a folder within the root directory; null if it says something else. */
export function folderOf(config: string, name: string): string | null {
  const found = new RegExp(`\\b${name}["']?\\s{0,20}:\\s{0,20}["'\`]([^"'\`\\n]{1,200})["'\`]`).exec(config)?.[1]
  return found === undefined ? null : plainFolder(found)
}

/** `./dist/` is dist; null for what lies outside. */
export function plainFolder(path: string): string | null {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  const isPlain =
    !path.startsWith('/') &&
    parts.length > 0 &&
    !parts.includes('.git') &&
    parts.every((part) => /^[\w@+ -][\w.@+ -]*$|^\.\w[\w.-]*$/.test(part))
  return isPlain ? parts.join('/') : null
}
