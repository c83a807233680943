// Checks the rules of a site when it is published, to warn of those that the edge won't follow.
import type { Artifacts, Manifest } from '../../../platform/artifacts/artifacts.ts'
import { parseHeaders } from '../../../platform/site-rules/header-rules.ts'
import { maxRulesLength, parseRedirects } from '../../../platform/site-rules/redirects.ts'
import { BuildFailure } from '../explain/failure.ts'
import type { BuildLog } from '../explain/log.ts'
import type { Source } from '../tree/source-tree.ts'

const readers = { _redirects: parseRedirects, _headers: parseHeaders }

/** Warns of ignored lines; fails if one of them should protect something. */
export async function checkRules(artifacts: Artifacts, files: Manifest['files'], log: BuildLog): Promise<void> {
  for (const [file, parse] of Object.entries(readers)) {
    const stored = Object.hasOwn(files, file) ? files[file]! : null
    if (!stored) continue
    if (stored.size > maxRulesLength) {
      const message = `The file is larger than ${maxRulesLength >> 10} KiB, so none of its rules apply.`
      // It may require passwords.
      if (file === '_headers') throw new BuildFailure('output_unsafe', `${file}: ${message}`)
      log.warn({ code: 'file_ignored', message, file })
      continue
    }
    const { notes } = parse((await artifacts.load(stored.hash)).toString())
    const unprotected = notes.find(({ protects }) => protects)
    if (unprotected)
      throw new BuildFailure(
        'output_unsafe',
        `${file}, line ${unprotected.line}: ${unprotected.text}; it would protect nothing.`,
      )
    for (const { line, text } of notes) log.warn({ code: 'rule_ignored', message: `${text}.`, file, line })
  }
}

/** Rule files have no effect on servers. */
export function warnOfServerRules(source: Source, prefix: string, log: BuildLog): void {
  for (const file of Object.keys(readers).flatMap((name) => [name, `public/${name}`])) {
    if (!source.entries.has(`${prefix}${file}`)) continue
    const message = 'The rules do not apply: they are for static sites, and this project is a server.'
    log.warn({ code: 'file_ignored', message, file: `${prefix}${file}` })
  }
}
