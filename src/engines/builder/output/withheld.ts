// Files that nobody means to publish: they are left out of sites that nothing builds, where the whole tree is served.
import { createPauses } from '../../../platform/pauses.ts'
import type { Warning } from '../explain/log.ts'
import { printable } from '../tree/entries.ts'

/** What is left out, and why, in the words of a warning. */
const kinds = {
  key: 'a private key',
  environment: 'a file of environment variables, which are often secret',
  program: 'a PHP program: nothing runs it here, so visitors would see its source',
  git: 'git data',
  database: 'a database',
  archive: 'an archive of the source',
} as const
type Kind = keyof typeof kinds

const archives = String.raw`zip|tar|7z|rar|t[gbx]z|tar\.\w{1,4}`
const archive = `(?:${archives})`
const byName: [kind: Kind, name: RegExp][] = [
  ['key', /^id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$|\.(?:pem|key|p12|pfx|p8|ppk|jks|keystore)$|^secring\.gpg$/i],
  ['environment', /^\.env(?:rc$|$|[.\-_])|^(?!(?:example|sample|template)\.).+\.env$/i],
  ['environment', /^env\.(?:prod(?:uction)?|dev(?:elopment)?|stag(?:e|ing)|live|local|test|docker)(?:\.local)?$/i],
  // With an ending behind it, as editors and backups leave it, it is the same text.
  ['program', /\.(?:php\d?|phtml|phps|phar)(?:$|[.~])/i],
  ['git', /^\.git/i],
  // Windows keeps pictures in Thumbs.db.
  ['database', /^(?!thumbs\.db$).*\.(?:sqlite3?|db3?|sqlitedb|mdb|accdb|dump|sql(?:\.\w{1,4})?)$/i],
  // A site may offer downloads: only names of what a site itself is kept in.
  [
    'archive',
    new RegExp(
      String.raw`^(?:backups?|bak|source(?:-?code)?|src|site|www|website|htdocs|httpdocs|public_html|wwwroot|repo)(?:[-_.]?v?\d[\w.-]*)?\.${archive}$`,
      'i',
    ),
  ],
  ['archive', new RegExp(String.raw`[-_.](?:main|master|source|src|backup)\.${archive}$`, 'i')],
]

// What editors, copies, rotation and compression put behind a name. The same text is in it.
const endings = [
  String.raw`[\s.~#]`,
  ',v',
  '-(?:wal|shm|journal)',
  String.raw`[\s._-](?:bak|bkp|bck|backup|old|orig|original|save|saved|copy|tmp|temp|swp|swo|prev|previous|rej)\d{0,4}`,
  // A number, a date, a part of an archive: ` (1)`, `-2024-01-01`, `.001`.
  String.raw`[\s._-]\(?\d[\d_-]{0,13}\)?`,
  String.raw`\.(?:gz|bz2|xz|zst|lz4|lzma|br|z|${archives})`,
]
const ending = new RegExp(`(?:${endings.join('|')})$`, 'i')
const maxEndings = 8

/** A name, and what it was before each of the endings that were put behind it. */
function namesBefore(name: string): string[] {
  const names = [name]
  for (let rest = name; names.length <= maxEndings; names.push(rest)) {
    const before = rest.replace(ending, '')
    if (before === rest || before === '') break
    rest = before
  }
  return names
}

// No edge shows a name that begins with a dot, and most repositories have some of these.
const harmless = /^\.(?:git(?!$|config$|-credentials$|[.~])|env\.(?:example|sample|template|dist)$)/i

// Keys are smaller, also with their certificates. What browsers load is read by nobody but them, and there may be many
// such files.
const maxKey = 64 << 10
const loaded =
  /\.(?:html?|css|m?js|map|json|svg|png|jpe?g|gif|webp|avif|ico|woff2?|ttf|otf|eot|mp[34]|webm|pdf|wasm|xml|webmanifest)$/i
const keyText =
  /(?:^|[\r\n])[ \t]*(?:-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d)/
// Most files have none of these, which takes a tenth of the time to see. UTF-16 of either order has the last of each.
const marks = ['PRIVATE KEY', 'PuTTY-User-Key-File-'].flatMap((mark) => [
  Buffer.from(mark),
  Buffer.from(mark, 'utf16le').subarray(0, -1),
])

/** At the start of any line: attributes, comments and certificates may come before it. */
function hasKey(content: Buffer): boolean {
  if (!marks.some((mark) => content.includes(mark))) return false
  // Without what makes it UTF-16 or begins it.
  const text = content.toString('latin1').replaceAll('\0', '')
  return keyText.test(text.replace(/^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)/, ''))
}

/** As edges see it: they show nothing of this kind, however it was published. */
const isHidden = (path: string) => /(?:^|\/)\./.test(path.replace(/^\.well-known\//, ''))

// The others of a kind are counted.
const namedOfAKind = 10

/** `origin` is the file that a link leads to, if that is why. */
type Withheld = { path: string; origin: string }

export type Guard<File extends object> = {
  /** Whether the content has to be looked at. */
  wants(path: string, size: number): boolean
  look(file: File, content: Buffer): void
  /** Removes what is not to be published, with what links to it. `published`: path → path of the file it is. */
  sift(published: Map<string, string>, files: ReadonlyMap<string, File>): Promise<void>
  warnings(): Warning[]
}

export function createGuard<File extends object>(): Guard<File> {
  const keys = new WeakSet<File>()
  const found = new Map<Kind, Withheld[]>()
  // The same names are in many paths.
  const kindsOfNames = new Map<string, Kind | null>()

  function note(kind: Kind, one: Withheld): void {
    const others = found.get(kind)
    if (others) others.push(one)
    else found.set(kind, [one])
  }

  function kindOfName(name: string): Kind | null {
    let kind = kindsOfNames.get(name)
    if (kind === undefined) {
      const names = namesBefore(name)
      kind = byName.find(([, pattern]) => names.some((one) => pattern.test(one)))?.[0] ?? null
      kindsOfNames.set(name, kind)
    }
    return kind
  }

  /** `.well-known` is made for programs, which ask for files of any name. */
  function kindOfPath(path: string): { kind: Kind; name: string } | null {
    const parts = path.split('/')
    if (parts[0] === '.well-known') return null
    for (const name of parts) {
      const kind = kindOfName(name)
      if (kind) return { kind, name }
    }
    return null
  }

  return {
    wants: (path, size) => size > 0 && size <= maxKey && !loaded.test(path),
    look(file, content) {
      if (hasKey(content)) keys.add(file)
    },
    async sift(published, files) {
      const pauses = createPauses()
      // In an order that does not depend on the disk.
      for (const [path, origin] of [...published].sort(([a], [b]) => (a < b ? -1 : 1))) {
        const pause = pauses()
        if (pause) await pause
        const own = kindOfPath(path)
        const ofContent = path === origin ? null : (kindOfPath(origin)?.kind ?? null)
        const kind = own?.kind ?? ofContent ?? (keys.has(files.get(origin)!) ? 'key' : null)
        if (!kind) continue
        published.delete(path)
        // Whoever links to a file that has a harmless name expects to see it.
        if (!own || !harmless.test(own.name)) note(kind, { path, origin: own ? path : origin })
      }
    },
    warnings: () =>
      [...found].flatMap(([kind, paths]) => {
        const cureOf = (path: string) =>
          isHidden(path)
            ? 'It is not published: names that start with a dot are never served, not even with publishAnyway'
            : 'It is not published. If it is meant for visitors, turn on the project’s publishAnyway'
        const more = paths.length - namedOfAKind
        return [
          ...paths.slice(0, namedOfAKind).map(({ path: file, origin }) => ({
            code: 'file_withheld',
            message: `It ${origin === file ? 'is' : `leads to ${printable(origin)},`} ${kinds[kind]}. ${cureOf(file)}.`,
            file,
          })),
          ...(more > 0
            ? [{ code: 'file_withheld', message: `${more} more files are not published, each of them ${kinds[kind]}.` }]
            : []),
        ]
      }),
  }
}
