// Resolves the URLs of submodules, which may only be on this installation's repository host.
import { readAddress, urlOfAddress } from '../../../platform/git/repository-address.ts'
import { BuildFailure } from '../explain/failure.ts'
import { type GitOptions, readRecords } from './git.ts'

const maxRecordLength = 8_192
const maxRecords = 1_000

/** Maps paths to URLs, from the commit's .gitmodules. */
export async function submoduleUrls(git: GitOptions, commit: string): Promise<Map<string, string>> {
  const sections = new Map<string, { path?: string; url?: string }>()
  let records = 0
  try {
    for await (const record of readRecords(
      ['config', '--blob', `${commit}:.gitmodules`, '-z', '--list'],
      git,
      maxRecordLength,
    )) {
      const [, name, key, value] = /^submodule\.(.*)\.(path|url)\n(.*)$/s.exec(record.toString('latin1')) ?? []
      if (name !== undefined) sections.set(name, { ...sections.get(name), [key!]: value })
      if (++records > maxRecords) break
    }
  } catch {
    git.signal.throwIfAborted()
    // Without a readable .gitmodules, each submodule is refused by its path.
  }
  return new Map([...sections.values()].flatMap(({ path, url }) => (path && url ? [[path, url] as const] : [])))
}

/**
 * The URL of one submodule. Git runs on the host and could reach internal services, so only the repository host is
 * allowed.
 */
export function submoduleUrl(url: string | undefined, path: string, parent: string, urlTemplate: string): string {
  const refuse = (why: string) => new BuildFailure('clone_failed', `The submodule ${path} cannot be cloned: ${why}.`)
  if (url === undefined) throw refuse('.gitmodules does not give its URL')
  if (parent.startsWith('ssh:')) return overSameSsh(url, parent, refuse)
  const host = new URL(urlTemplate.replace('{repo}', 'owner/repository'))
  const requested = addressOf(url, parent, host)
  if (requested === null) throw refuse(`${url} is not a repository URL`)
  if (requested.origin !== host.origin) {
    const [there, here] = requested.host === host.host ? [requested.origin, host.origin] : [requested.host, host.host]
    throw refuse(`it is at ${there}, but submodules are only cloned from ${here}`)
  }
  if (requested.username || requested.password) throw refuse('its URL contains a user name or password')
  return requested.href
}

/** With a deploy key, everything is fetched by SSH from the host that has the key. */
function overSameSsh(url: string, parent: string, refuse: (why: string) => BuildFailure): string {
  const host = readAddress(parent)!
  const relative = /^\.\.?\//.test(url) ? new URL(url, `${parent.replace(/\/+$/, '')}/`).href : null
  const requested = readAddress(relative ?? url)
  if (requested === null) throw refuse(`${url} is not a repository URL`)
  if (requested.hostname !== host.hostname) {
    throw refuse(`it is at ${requested.hostname}, but submodules are only cloned from ${host.hostname}`)
  }
  return urlOfAddress({ ...host, path: requested.path })
}

function addressOf(url: string, parent: string, host: URL): URL | null {
  if (/^\.\.?\//.test(url)) return URL.canParse(parent) ? new URL(url, `${parent.replace(/\/+$/, '')}/`) : null
  // An SSH URL such as git@example.com:owner/repository.git is fetched over HTTP instead.
  const [, sshHost, sshPath] = /^(?:ssh:\/\/)?git@([a-z0-9.-]+)(?::\d+\/|[:/])(.+)$/i.exec(url) ?? []
  if (sshHost?.toLowerCase() === host.hostname) return new URL(`/${sshPath!.replace(/^\/+/, '')}`, host.origin)
  return /^https?:\/\//i.test(url) && URL.canParse(url) ? new URL(url) : null
}
