// Withholds files that were probably not meant to be published, in sites that serve their tree without a build.
import { createPauses } from '../../../platform/pauses.ts'
import type { Warning } from '../explain/log.ts'
import { printable } from '../tree/entries.ts'

/** The kinds of withheld files, as worded in warnings. */
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
const patterns: [kind: Kind, name: RegExp][] = [
  ['key', /^id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$|\.(?:pem|key|p12|pfx|p8|ppk|jks|keystore)$|^secring\.gpg$/i],
  ['environment', /^\.env(?:rc$|$|[.\-_])|^(?!(?:example|sample|template)\.).+\.env$/i],
  ['environment', /^env\.(?:prod(?:uction)?|dev(?:elopment)?|stag(?:e|ing)|live|local|test|docker)(?:\.local)?$/i],
  // With the suffix of an editor or a backup, it is still the same source.
  ['program', /\.(?:php\d?|phtml|phps|phar)(?:$|[.~])/i],
  ['git', /^\.git/i],
  // Windows stores thumbnails in Thumbs.db.
  ['database', /^(?!thumbs\.db$).*\.(?:sqlite3?|db3?|sqlitedb|mdb|accdb|dump|sql(?:\.\w{1,4})?)$/i],
  // Sites may offer downloads, so only typical names of source archives match.
  [
    'archive',
    new RegExp(
      String.raw`^(?:backups?|bak|source(?:-?code)?|src|site|www|website|htdocs|httpdocs|public_html|wwwroot|repo)(?:[-_.]?v?\d[\w.-]*)?\.${archive}$`,
      'i',
    ),
  ],
  ['archive', new RegExp(String.raw`[-_.](?:main|master|source|src|backup)\.${archive}$`, 'i')],
]

// Suffixes added by editors, copies, log rotation and compression.
const endings = [
  String.raw`[\s.~#]`,
  ',v',
  '-(?:wal|shm|journal)',
  String.raw`[\s._-](?:bak|bkp|bck|backup|old|orig|original|save|saved|copy|tmp|temp|swp|swo|prev|previous|rej)\d{0,4}`,
  // A number, a date or a part of an archive: ` (1)`, `-2024-01-01`, `.001`.
  String.raw`[\s._-]\(?\d[\d_-]{0,13}\)?`,
  String.raw`\.(?:gz|bz2|xz|zst|lz4|lzma|br|z|${archives})`,
]
const ending = new RegExp(`(?:${endings.join('|')})$`, 'i')
const maxEndings = 8

/** The name, and the name without each of its added suffixes. */
function originalNames(name: string): string[] {
  const names = [name]
  for (let rest = name; names.length <= maxEndings; names.push(rest)) {
    const before = rest.replace(ending, '')
    if (before === rest || before === '') break
    rest = before
  }
  return names
}

// The edge never serves names with a leading dot, and most repositories have some of these.
const harmless = /^\.(?:git(?!$|config$|-credentials$|[.~])|env\.(?:example|sample|template|dist)$)/i

// Keys are smaller, even with certificates. Files that browsers load are numerous and not searched.
const maxKeyBytes = 64 << 10
const webFiles =
  /\.(?:html?|css|m?js|map|json|svg|png|jpe?g|gif|webp|avif|ico|woff2?|ttf|otf|eot|mp[34]|webm|pdf|wasm|xml|webmanifest)$/i
const keyText =
  /(?:^|[\r\n])[ \t]*(?:-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d)/
// Most files contain none of these, and checking that takes a tenth of the time. Includes UTF-16 of either byte order.
const marks = ['PRIVATE KEY', 'PuTTY-User-Key-File-'].flatMap((mark) => [
  Buffer.from(mark),
  Buffer.from(mark, 'utf16le').subarray(0, -1),
])

/** Looks at the start of every line, because attributes, comments and certificates may come first. */
function hasKey(content: Buffer): boolean {
  if (!marks.some((mark) => content.includes(mark))) return false
  // Removes a byte order mark and the zero bytes of UTF-16.
  const text = content.toString('latin1').replaceAll('\0', '')
  return keyText.test(text.replace(/^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)/, ''))
}

/** Whether edges refuse to serve the path anyway. */
const isHidden = (path: string) => /(?:^|\/)\./.test(path.replace(/^\.well-known\//, ''))

// Further files of a kind are only counted.
const maxListedPerKind = 10

/** `origin` is the target of a link, if that is the reason. */
type Withheld = { path: string; origin: string }

export type Guard<File extends object> = {
  /** Whether the file's content must be inspected. */
  needsContent(path: string, size: number): boolean
  inspect(file: File, content: Buffer): void
  /** Removes withheld files and the links to them. `published` maps paths to paths of files. */
  filter(published: Map<string, string>, files: ReadonlyMap<string, File>): Promise<void>
  warnings(): Warning[]
}

export function createGuard<File extends object>(): Guard<File> {
  const keys = new WeakSet<File>()
  const withheld = new Map<Kind, Withheld[]>()
  // Caches by name, because many paths share names.
  const kindsOfNames = new Map<string, Kind | null>()

  function add(kind: Kind, one: Withheld): void {
    const others = withheld.get(kind)
    if (others) others.push(one)
    else withheld.set(kind, [one])
  }

  function kindOfName(name: string): Kind | null {
    let kind = kindsOfNames.get(name)
    if (kind === undefined) {
      const names = originalNames(name)
      kind = patterns.find(([, pattern]) => names.some((one) => pattern.test(one)))?.[0] ?? null
      kindsOfNames.set(name, kind)
    }
    return kind
  }

  /** Files in `.well-known` are meant for programs and may have any name. */
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
    needsContent: (path, size) => size > 0 && size <= maxKeyBytes && !webFiles.test(path),
    inspect(file, content) {
      if (hasKey(content)) keys.add(file)
    },
    async filter(published, files) {
      const pauses = createPauses()
      // Sorted, so that the order doesn't depend on the disk.
      for (const [path, origin] of [...published].sort(([a], [b]) => (a < b ? -1 : 1))) {
        const pause = pauses()
        if (pause) await pause
        const own = kindOfPath(path)
        const ofContent = path === origin ? null : (kindOfPath(origin)?.kind ?? null)
        const kind = own?.kind ?? ofContent ?? (keys.has(files.get(origin)!) ? 'key' : null)
        if (!kind) continue
        published.delete(path)
        // A link to a harmless file is reported, because its author expects to see it.
        if (!own || !harmless.test(own.name)) add(kind, { path, origin: own ? path : origin })
      }
    },
    warnings: () =>
      [...withheld].flatMap(([kind, paths]) => {
        const remedyOf = (path: string) =>
          isHidden(path)
            ? 'It is not published: names that start with a dot are never served, not even with publishAnyway'
            : 'It is not published. If it is meant for visitors, turn on the project’s publishAnyway'
        const more = paths.length - maxListedPerKind
        return [
          ...paths.slice(0, maxListedPerKind).map(({ path: file, origin }) => ({
            code: 'file_withheld',
            message: `It ${origin === file ? 'is' : `leads to ${printable(origin)},`} ${kinds[kind]}. ${remedyOf(file)}.`,
            file,
          })),
          ...(more > 0
            ? [{ code: 'file_withheld', message: `${more} more files are not published, each of them ${kinds[kind]}.` }]
            : []),
        ]
      }),
  }
}
