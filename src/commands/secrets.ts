// `berth secrets`: re-encrypts stored secrets after SECRETS_KEY was replaced, and shows which keys are still needed.
import type { Config } from '../config.ts'
import { createVault } from '../platform/secrets/secrets.ts'
import { readSecretsKey } from '../roles/opening/first-start.ts'
import { openStorage } from '../roles/opening/storage.ts'
import { admitKey, type ColumnRotation, countSealed, isComplete, rotateSecrets } from '../services/secrets/index.ts'
import { UsageError } from './usage-error.ts'

// More row names would only hide the sentence that follows.
const maxNamed = 20

export async function secrets(config: Config, verb: 'rotate' | 'status'): Promise<void> {
  const { workerDb: db, close } = await openStorage(config)
  try {
    const vault = createVault(await readSecretsKey(config), config.oldSecretsKeys)
    if (verb === 'status') return printStatus(await countSealed(db, vault), vault.keyId)
    const { isNew } = await admitKey(db, vault)
    if (isNew) {
      console.error(
        `berth: No process has run with this SECRETS_KEY (${vault.keyId}) yet. Running processes can't open what is re-sealed now; restart them with this key.`,
      )
    }
    const rotation = await rotateSecrets(db, vault, printColumn)
    const sum = rotation.columns.reduce((all, { resealed }) => all + resealed, 0)
    console.log(`Re-sealed ${sum} secrets with ${vault.keyId}.`)
    if (!isComplete(rotation)) throw new UsageError(remainingWork(rotation.columns))
    const dropped = rotation.dropped.length > 0 ? ` (${rotation.dropped.join(', ')})` : ''
    console.log(`No other key is needed: you can remove SECRETS_KEY_OLD${dropped}.`)
  } finally {
    await close()
  }
}

function printColumn({ name, resealed, unopened, busy }: ColumnRotation): void {
  if (resealed + unopened.length + busy > 0) console.log(`${name.padEnd(24)} ${resealed} re-sealed`)
  for (const key of unopened.slice(0, maxNamed)) console.log(`${name.padEnd(24)} cannot be opened: ${key}`)
  if (unopened.length > maxNamed) console.log(`${name.padEnd(24)} and ${unopened.length - maxNamed} more`)
}

function remainingWork(columns: ColumnRotation[]): string {
  const unopened = columns.reduce((all, column) => all + column.unopened.length, 0)
  const busy = columns.reduce((all, column) => all + column.busy, 0)
  const parts = [
    unopened > 0 &&
      `${unopened} secrets cannot be opened with SECRETS_KEY or SECRETS_KEY_OLD: add the missing key there, or set these values again.`,
    busy > 0 && `${busy} secrets kept changing: run \`berth secrets rotate\` again.`,
    'Keep SECRETS_KEY_OLD until then.',
  ]
  return parts.filter(Boolean).join(' ')
}

function printStatus(uses: Awaited<ReturnType<typeof countSealed>>, keyId: string): void {
  console.log(`SECRETS_KEY is ${keyId}.`)
  for (const { keyId: id, values, known } of uses) {
    const name = id ?? 'a key without an id'
    const note =
      id === keyId ? '' : known ? ', to be re-sealed by `berth secrets rotate`' : ', a key that is missing here'
    console.log(`${values} sealed with ${name}${note}`)
  }
}
