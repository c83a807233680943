// The folders of a repository that look like projects of their own, for whom the root directory has nothing to publish.

import type { Facts } from '../project/adapter.ts'
import { memberDirectories } from '../project/libraries.ts'
import { maxManifestLength, readManifest } from '../project/manifest.ts'
import { asText, type Source } from '../tree/source-tree.ts'

const maxRead = 100
const maxNamed = 6
// What others look at, not what is deployed.
const aside = /(^|\/)(\.[^/]+|examples?|fixtures?|tests?|__tests__|e2e|templates?|scripts|tools)\//

/** Each with what it looks like: `apps/web (Next.js)`. `titleOf` knows what a folder is. */
export async function appsIn(
  source: Source,
  root: string,
  titleOf: (facts: Facts) => string | null,
): Promise<string[]> {
  const directories = memberDirectories(source, { directory: root }).filter((one) => one !== root && !aside.test(one))
  const found: string[] = []
  for (const directory of directories.slice(0, maxRead)) {
    const manifest = await readManifest(await source.text(`${directory}package.json`, maxManifestLength >> 2))
    const title = titleOf({
      manifest,
      hasManifest: true,
      manager: null,
      buildText: manifest.scripts.get('build') ?? '',
      listener: null,
      has: (path) => source.entries.has(directory + path),
      hasFolder: () => false,
    })
    if (title !== null) found.push(`${asText(directory.slice(root.length, -1)).slice(0, 100)} (${title})`)
    if (found.length === maxNamed) break
  }
  return found
}
