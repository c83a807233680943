// Helpers for tests of uploads: contents with hashes, archives, and what uploads leave behind.
import { createHash, randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type TarEntry, tarEnd, tarHeader, tarPadding } from '../../src/platform/files/tar.ts'
import type { TestApi } from './api.ts'

export type Files = Record<string, string | Buffer>
type Archived = TarEntry & { content?: Buffer }

export const octets = { 'content-type': 'application/octet-stream' }
export const tar = { 'content-type': 'application/x-tar' }

export const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')
export const random = (bytes = 40) => randomBytes(bytes / 2).toString('hex')

export const file = (path: string, text: string | Buffer, mode = 0o644) => {
  const content = Buffer.from(text as string)
  return { kind: 'file' as const, path, mode, size: content.length, content }
}

export function archive(entries: Archived[]): Buffer {
  const blocks = entries.flatMap(({ content = Buffer.alloc(0), ...entry }) => [
    tarHeader(entry),
    content,
    tarPadding(content.length),
  ])
  return Buffer.concat([...blocks, tarEnd])
}

type Sent = { name?: string | undefined; token?: string | undefined; range?: string | undefined }

export function uploadsOf(api: TestApi) {
  return {
    put(content: string | Buffer, { name = sha256(content), token, range }: Sent = {}) {
      const headers = { ...octets, ...(range && { 'content-range': `bytes ${range}` }) }
      const body = Buffer.from(content as string)
      return api.call('PUT', `/uploads/${name}`, { body, headers, ...(token && { token }) })
    },
    /** Lists the files; the missing ones must be uploaded. */
    deploy(files: Files, more: { token?: string | undefined; project?: string; prebuilt?: boolean } = {}) {
      const { token, project = 'site', prebuilt } = more
      const listed = Object.entries(files).map(([path, content]) => ({
        path,
        sha256: sha256(content),
        size: Buffer.byteLength(content as string),
      }))
      const body = { project, source: { files: listed, ...(prebuilt && { prebuilt }) } }
      return api.call('POST', '/deployments', { body, ...(token && { token }) })
    },
    /** Creates another account with these limits and a project `site`. */
    async limited(limits: object) {
      const { accountId, token } = await api.newAccount()
      await api.call('POST', '/projects', { body: { name: 'site' }, token })
      await api.db.account.update({ where: { id: accountId }, data: { limits } })
      return { accountId, token }
    },
    jobOf: (id: string) => api.db.job.count({ where: { kind: 'build', key: id } }),
    isStored: (hash: string) => api.deps.artifacts.isWhole(hash),
    /** Everything that uploads leave on the API's disk. */
    leftOnDisk: (): Promise<string[]> => readdir(join(api.config.dataDir, 'uploads')).catch(() => []),
  }
}
