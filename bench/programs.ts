// Programs that Berth is measured against or with, and their Debian packages.
import { accessSync } from 'node:fs'
import { delimiter, join } from 'node:path'

export const packages = {
  caddy: 'caddy',
  curl: 'curl',
  dig: 'dnsutils',
  dnsperf: 'dnsperf',
  knotd: 'knot',
  nginx: 'nginx',
  pdns_server: 'pdns-server pdns-backend-bind pdns-backend-sqlite3 sqlite3',
  rsync: 'rsync',
  wrk: 'wrk',
}
export type Program = keyof typeof packages

/** The path of a program; Debian keeps servers in directories that only root searches. */
export function findProgram(name: string): string | null {
  const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  const found = directories.find((directory) => {
    try {
      accessSync(join(directory, name))
      return directory !== ''
    } catch {
      return false
    }
  })
  return found === undefined ? null : join(found, name)
}
