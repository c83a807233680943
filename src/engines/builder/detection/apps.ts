// Finds folders that look like separate projects, to suggest one if the root directory has nothing to publish.

import type { Facts } from '../project/adapter.ts'
import { memberDirectories } from '../project/libraries.ts'
import { maxManifestLength, readManifest } from '../project/manifest.ts'
import { asText, type Source } from '../tree/source-tree.ts'

const maxFoldersRead = 100
const maxApps = 6
// Folders that nobody deploys.
const ignoredFolders = /(^|\/)(\.[^/]+|examples?|fixtures?|tests?|__tests__|e2e|templates?|scripts|tools)\//

/** Returns folders with their frameworks, such as `apps/web (Next.js)`. */
export async function findApps(
  source: Source,
  root: string,
  titleOf: (facts: Facts) => string | null,
): Promise<string[]> {
  const directories = memberDirectories(source, { directory: root }).filter(
    (one) => one !== root && !ignoredFolders.test(one),
  )
  const apps: string[] = []
  for (const directory of directories.slice(0, maxFoldersRead)) {
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
    if (title !== null) apps.push(`${asText(directory.slice(root.length, -1)).slice(0, 100)} (${title})`)
    if (apps.length === maxApps) break
  }
  return apps
}
