// Decides how long browsers may cache a file: forever if its name contains a content hash, else with revalidation.

export const immutableCaching = 'public, max-age=31536000, immutable'
export const revalidateCaching = 'public, max-age=0, must-revalidate'

// Frameworks put only files with a content hash in their names into these folders.
const immutableFolders = ['_next/static/', '_app/immutable/', '_astro/']
// In these folders, bundlers name files `<name>-<8 characters of base64url>`.
const bundlerFolders = new Set(['assets', '_nuxt', 'chunks', 'static'])

export function cachingOf(path: string): string {
  return isNamedByContent(path) ? immutableCaching : revalidateCaching
}

/**
 * When in doubt, the answer is no: revalidation costs a 304, while a wrong `immutable` shows an outdated file.
 * `photo-20241115.jpg`, `banner-1920x1080.png` and `guide-chapter12.pdf` contain no hash.
 */
export function isNamedByContent(path: string): boolean {
  if (/\.html?$/i.test(path)) return false
  if (immutableFolders.some((folder) => path.startsWith(folder) || path.includes(`/${folder}`))) return true
  const folders = path.split('/')
  const name = folders.pop()!
  const dot = name.lastIndexOf('.')
  if (dot <= 0) return false
  const stem = name.slice(0, dot).replace(/\.(?:min|chunk|bundle|module|d)$/, '')
  if (stem.split(/[._-]/).some(isHexHash)) return true
  return (
    folders.some((folder) => bundlerFolders.has(folder)) && /[.-][\w-]{8}$/.test(stem) && isBase64Hash(stem.slice(-8))
  )
}

/** A word and a number in either order were chosen by a person. */
const isWordAndNumber = (text: string) => /^(?:[a-z]+\d+|\d+[a-z]+|\d+x\d+)$/i.test(text)

function isHexHash(text: string): boolean {
  return /^[0-9a-f]{8,64}$/.test(text) && /\d/.test(text) && /[a-f]/.test(text) && !isWordAndNumber(text)
}

function isBase64Hash(text: string): boolean {
  // esbuild writes upper-case base32.
  if (/^[A-Z2-7]{8}$/.test(text)) return /\d/.test(text) && !isWordAndNumber(text)
  // Random characters switch character class 4.5 times on average, words and camel case rarely more than 3 times.
  return text.match(/[a-z]+|[A-Z]+|\d+|[_-]+/g)!.length >= 5
}
