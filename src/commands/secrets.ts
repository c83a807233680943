// `berth secrets`: re-seals what is stored after SECRETS_KEY was replaced, and tells which keys are still needed.
import type { Config } from '../config.ts'
import { createVault } from '../platform/secrets/secrets.ts'
import { readSecretsKey } from '../roles/opening/first-start.ts'
import { openStorage } from '../roles/opening/storage.ts'
import { admitKey, type ColumnRotation, countSealed, isComplete, rotateSecrets } from '../services/secrets/index.ts'
import { UsageError } from './usage-error.ts'

// More names of rows than this would only hide the sentence that follows.
const maxNamed = 20

export async function secrets(config: Config, verb: 'rotate' | 'status'): Promise<void> {
  const { workerDb: db, close } = await openStorage(config)
  try {
    const vault = createVault(await readSecretsKey(config), config.oldSecretsKeys)
    if (verb === 'status') return tellStatus(await countSealed(db, vault), vault.keyId)
    const { isNew } = await admitKey(db, vault)
    if (isNew) {
      console.error(
        `berth: Nothing was started with this SECRETS_KEY (${vault.keyId}) before. A process that runs without it cannot open what is re-sealed now, and must be restarted with it.`,
      )
    }
    const rotation = await rotateSecrets(db, vault, tellColumn)
    const sum = rotation.columns.reduce((all, { resealed }) => all + resealed, 0)
    console.log(`Re-sealed ${sum} secrets with ${vault.keyId}.`)
    if (!isComplete(rotation)) throw new UsageError(whatIsLeft(rotation.columns))
    const dropped = rotation.dropped.length > 0 ? ` (${rotation.dropped.join(', ')})` : ''
    console.log(`Nothing is sealed with another key: SECRETS_KEY_OLD can be dropped${dropped}.`)
  } finally {
    await close()
  }
}

function tellColumn({ name, resealed, unopened, busy }: ColumnRotation): void {
  if (resealed + unopened.length + busy > 0) console.log(`${name.padEnd(24)} ${resealed} re-sealed`)
  for (const key of unopened.slice(0, maxNamed)) console.log(`${name.padEnd(24)} cannot be opened: ${key}`)
  if (unopened.length > maxNamed) console.log(`${name.padEnd(24)} and ${unopened.length - maxNamed} more`)
}

function whatIsLeft(columns: ColumnRotation[]): string {
  const unopened = columns.reduce((all, column) => all + column.unopened.length, 0)
  const busy = columns.reduce((all, column) => all + column.busy, 0)
  const parts = [
    unopened > 0 &&
      `${unopened} secrets cannot be opened with any key of SECRETS_KEY and SECRETS_KEY_OLD: add the missing key there, or set these values anew.`,
    busy > 0 && `${busy} secrets were being changed all the time: run \`berth secrets rotate\` again.`,
    'Keep SECRETS_KEY_OLD until then.',
  ]
  return parts.filter(Boolean).join(' ')
}

function tellStatus(uses: Awaited<ReturnType<typeof countSealed>>, keyId: string): void {
  console.log(`SECRETS_KEY is ${keyId}.`)
  for (const { keyId: id, values, known } of uses) {
    const name = id ?? 'a key without an id'
    const note =
      id === keyId ? '' : known ? ', to be re-sealed by `berth secrets rotate`' : ', a key that is missing here'
    console.log(`${values} sealed with ${name}${note}`)
  }
}
