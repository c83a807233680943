// Git LFS for the test Git host: the batch API and the objects.
import { createHash } from 'node:crypto'
import { json } from 'node:stream/consumers'
import type { GitHost } from './git-host.ts'

export type LfsStore = {
  /** Stores the content; returns its pointer for the repository. */
  add(content: Buffer): string
}

/** Serves objects for every repository of the host. */
export function serveLfs(host: GitHost): LfsStore {
  const objects = new Map<string, Buffer>()
  const { origin } = new URL(host.template.replace('{repo}', 'a/b'))
  host.handlers.push((request, response) => {
    const [, oid] = /\/info\/lfs\/objects\/([0-9a-f]{64})$/.exec(request.url!) ?? []
    if (oid !== undefined) {
      const content = objects.get(oid)
      response.writeHead(content ? 200 : 404).end(content)
      return true
    }
    if (!request.url!.endsWith('/info/lfs/objects/batch')) return false
    const base = origin + request.url!.replace(/batch$/, '')
    void json(request).then((asked) => {
      const wanted = (asked as { objects: { oid: string; size: number }[] }).objects
      const found = wanted.map(({ oid, size }) =>
        objects.has(oid)
          ? { oid, size, actions: { download: { href: base + oid } } }
          : { oid, size, error: { code: 404, message: 'no such object' } },
      )
      response.setHeader('content-type', 'application/vnd.git-lfs+json')
      response.end(JSON.stringify({ transfer: 'basic', objects: found }))
    })
    return true
  })
  return {
    add(content) {
      const oid = createHash('sha256').update(content).digest('hex')
      objects.set(oid, content)
      return pointerTo(oid, content.length)
    },
  }
}

export const pointerTo = (oid: string, size: number) =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${size}\n`
