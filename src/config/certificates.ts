// The certificate authority.
import { type Refuse, Text, type Values } from './variables.ts'

export const certificateVariables = {
  ACME_DIRECTORY_URL: Text(),
  ACME_EMAIL: Text(),
  ACME_CA_FILE: Text(),
  ACME_EAB: Text(),
}

export function certificateSettings(env: Values<typeof certificateVariables>, refuse: Refuse) {
  if (env.ACME_DIRECTORY_URL && !env.ACME_DIRECTORY_URL.startsWith('https://')) {
    refuse('ACME_DIRECTORY_URL must start with https://.')
  }
  return {
    /** Null: the internal development CA signs. */
    acme: env.ACME_DIRECTORY_URL
      ? {
          directoryUrl: env.ACME_DIRECTORY_URL,
          email: env.ACME_EMAIL || null,
          caFile: env.ACME_CA_FILE || null,
          eab: env.ACME_EAB ? externalAccount(env.ACME_EAB, refuse) : null,
        }
      : null,
  }
}

function externalAccount(text: string, refuse: Refuse): { kid: string; key: string } {
  const colon = text.lastIndexOf(':')
  if (colon < 1 || !/^[A-Za-z0-9_-]+=*$/.test(text.slice(colon + 1))) {
    refuse('ACME_EAB must be <key id>:<key>, the key in base64url as the authority gave it.')
  }
  return { kid: text.slice(0, colon), key: text.slice(colon + 1) }
}
