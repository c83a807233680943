// The operator's pages name what exists: every setting, every metric and alert, and settings that Berth starts with.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig, variableNames } from '../../src/config.ts'
import { quotaNames, quotas, quotaVariable } from '../../src/schemas/quotas.ts'
import { platformZones } from '../../src/services/dns/zones/platform-zones.ts'
import { readEnvFile } from '../image/compose.ts'
import { blocksOf, root } from './blocks.ts'

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const namesIn = (text: string, pattern: RegExp) => [...new Set(text.match(pattern))]

const key = Buffer.alloc(32, 7).toString('base64')

test('the two machines of install.md start with the settings written there, and agree on their nameservers', () => {
  const machines = blocksOf('docs/install.md', 'ini').map((block) => {
    const values = readEnvFile(block.replace('<key>', key).replaceAll(/<[\w-]+>/g, 'secret'))
    expect(Object.keys(values).filter((name) => !variableNames.includes(name))).toEqual([])
    const settings = { ...values, NODE_ENV: 'production' }
    // The nameserver's own file, as the text says.
    const { records } = platformZones(loadConfig({ ...settings, NAMESERVER_LISTEN: '0.0.0.0:53' })).get('example.com')!
    expect(records.filter((record) => /ns[12] /.test(record))).toEqual(['A 60 ns1 192.0.2.1', 'A 60 ns2 198.51.100.1'])
    return loadConfig(settings)
  })
  expect(machines.map(({ runner }) => runner.host)).toEqual(['10.0.0.1', '10.0.0.2'])
  const [one, two] = machines.map(({ runner, nodeAddress, ...rest }) => rest)
  expect(one).toEqual(two)
  expect(one!.managedTlsHost).toBe('api.example.com')
})

test('configuration.md names every setting and no other, with the quotas that are in effect', () => {
  const text = read('docs/configuration.md')
  const rows = [...text.matchAll(/^\| (`[A-Z][^|]*) \|/gm)].flatMap(([, cell]) => namesIn(cell!, /[A-Z][A-Z_]+/g))
  const notOurs = ['NODE_TLS_REJECT_UNAUTHORIZED', 'PATH']
  expect(rows.sort()).toEqual(variableNames.filter((name) => !notOurs.includes(name)).sort())
  for (const name of quotaNames) expect(text).toContain(`| \`${quotaVariable(name)}\` | ${quotas[name].max} |`)
  expect(read('docs/certificates.md')).toContain(`${quotas.claimsPerMonth.max.toLocaleString('en')} new names`)
})

test('observability.md names every metric and alert', () => {
  const text = read('docs/observability.md')
  const metrics = globSync('src/**/*.ts', { cwd: root }).flatMap((path) =>
    namesIn(read(path), /(?<=name: ')berth_[a-z_]+(?=')/g),
  )
  expect(metrics.length).toBeGreaterThan(40)
  const isNamed = (name: string) => text.includes(`\`${name}\``) || name.startsWith('berth_nameserver_')
  expect(metrics.filter((name) => !isNamed(name))).toEqual([])
  const alerts = namesIn(read('deploy/prometheus/berth.rules.yml'), /(?<=alert: )\w+/g)
  expect(namesIn(text, /\bBerth[A-Z]\w+/g).sort()).toEqual([...alerts].sort())
})
