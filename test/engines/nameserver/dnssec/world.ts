// Signed zones: keys for them, and programs of others that say whether a zone is signed as it should be.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createZoneKey } from '../../../../src/services/dns/dnssec/zone-keys.ts'
import { keyArgument, run, type World } from '../transfer/world.ts'

/** Signs a zone with a new key, and waits until it is served so. */
export async function signZone(world: World, zone: string, denial: 'nsec' | 'nsec3' = 'nsec'): Promise<string> {
  const { db, deps } = world.api
  const { id } = await db.domain.findFirstOrThrow({ where: { name: zone } })
  await db.domain.update({ where: { id }, data: { dnssecDenial: denial } })
  const use = { published: true, signing: true, announced: true }
  const key = await db.zoneKey.create({ data: createZoneKey(deps.vault, id, use) })
  await world.settled(zone)
  return key.id
}

/** The zone as a secondary has it. */
export const transferred = (world: World, zone: string) =>
  world.dig('-y', keyArgument, 'AXFR', zone, '+noall', '+answer', '+onesoa', '+nosplit')

/** What is wrong with a signed zone, by BIND and by ldns; empty if nothing is. */
export async function faultsOf(zone: string, text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-signed-'))
  try {
    const file = join(directory, 'zone')
    await writeFile(file, text)
    const bind = await run('dnssec-verify', ['-z', '-o', zone, file])
    const ldns = await run('ldns-verify-zone', [file])
    const good = /Zone fully signed/.test(bind) && /^Zone is verified and complete$/m.test(ldns)
    return good ? '' : `${bind}\n${ldns}`
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
