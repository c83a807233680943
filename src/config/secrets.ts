// The keys that encrypt secrets in the database.
import { List, list, type Refuse, Text, type Values } from './variables.ts'

export const secretVariables = { SECRETS_KEY: Text(), SECRETS_KEY_OLD: List() }

export function secretSettings(env: Values<typeof secretVariables>, refuse: Refuse) {
  const parseKey = (name: keyof typeof secretVariables) => (text: string) => {
    const key = Buffer.from(text, 'base64')
    if (key.length !== 32) refuse(`${name} must be 32 bytes in base64; \`openssl rand -base64 32\` creates one.`)
    return key
  }
  return {
    secretsKey: env.SECRETS_KEY ? parseKey('SECRETS_KEY')(env.SECRETS_KEY) : null,
    oldSecretsKeys: list(env.SECRETS_KEY_OLD).map(parseKey('SECRETS_KEY_OLD')),
  }
}
