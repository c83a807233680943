// The units of systemd: a template, what each role needs beside it, and what systemd says of them.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { root } from '../image/compose.ts'
import { read, roles, sandboxed, unknownOf } from './known.ts'

describe('the units of systemd', () => {
  const directory = join(root, 'deploy/systemd')
  const units = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) => /\.\w+$/.test(name))
  const texts = units.filter((name) => !name.endsWith('.d')).map((name) => read(`deploy/systemd/${name}`))
  const settings = (text: string) =>
    Object.fromEntries(
      [...text.matchAll(/^Environment=(.+)$/gm)].flatMap(([, line]) =>
        line!.split(' ').map((pair) => pair.split('=') as [string, string]),
      ),
    )

  test('have what each role needs beside the template, and a port for the metrics of each', () => {
    const found = readdirSync(directory).flatMap((name) => /^berth@(\w+)\.service\.d$/.exec(name)?.[1] ?? [])
    expect(found.sort()).toEqual(roles)
    const ports = roles.map((role) => settings(read(`deploy/systemd/berth@${role}.service.d/role.conf`)).METRICS_PORT)
    expect(new Set(ports).size).toBe(roles.length)
    expect(ports).not.toContain(undefined)
    for (const text of texts) expect(unknownOf(Object.keys(settings(text)))).toEqual([])
  })

  test('let only worker and runner make namespaces', () => {
    expect(read('deploy/systemd/berth@.service')).toMatch(/^RestrictNamespaces=yes$/m)
    for (const role of roles) {
      const text = read(`deploy/systemd/berth@${role}.service.d/role.conf`)
      expect(/^RestrictNamespaces=no$/m.test(text)).toBe(sandboxed.includes(role))
    }
  })

  test.skipIf(spawnSync('systemd-analyze', ['--version']).status !== 0)('pass systemd-analyze verify', () => {
    const home = mkdtempSync(join(tmpdir(), 'berth-units-'))
    try {
      execFileSync('cp', ['-r', `${directory}/.`, home])
      // Instances are files of the template's name, as `systemctl enable` makes them.
      for (const role of roles) execFileSync('ln', ['-s', 'berth@.service', join(home, `berth@${role}.service`)])
      const files = [...roles.map((role) => `berth@${role}.service`), 'berth-migrate.service', 'berth.target']
      const paths = files.map((name) => join(home, name))
      const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...paths], {
        encoding: 'utf8',
        env: { ...process.env, SYSTEMD_UNIT_PATH: `${home}:` },
      })
      expect(stderr.split('\n').filter((line) => line.includes('berth'))).toEqual([])
      expect(status).toBe(0)
    } finally {
      rmSync(home, { recursive: true })
    }
  })
})
