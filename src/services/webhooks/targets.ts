// Where a webhook may point: the rules on its URL. Addresses are checked again after names are resolved.
import { hostRefusal } from '../../platform/http/public-address.ts'

export type TargetRules = { production: boolean; webhookAllowPrivate: boolean }

/** Why a webhook may not have this URL, or null if it may. What a name resolves to is checked when it is called. */
export function targetRefusal(text: string, rules: TargetRules): string | null {
  const schemes = rules.production ? 'https://' : 'https:// or http://'
  if (!URL.canParse(text) || !/^https?:\/\//i.test(text)) return `must be an absolute ${schemes} URL`
  const url = new URL(text)
  if (rules.production && url.protocol !== 'https:') return 'must start with https://'
  // Credentials would be shown to everyone who may read the webhook; a fragment is never sent.
  if (url.username !== '' || url.password !== '' || /^https?:\/\/[^/?#]*@/i.test(text)) {
    return 'must not contain credentials'
  }
  if (text.includes('#')) return 'must not contain a fragment'
  return rules.webhookAllowPrivate ? null : hostRefusal(url.hostname)
}
