// Who sees the previews of a project: the password, and the signatures of links and cookies.
import type { Project } from '../../generated/client.ts'
import { invalidField } from '../../platform/errors.ts'
import type { PasswordHasher } from '../../platform/secrets/password-hash.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'

/** The slow hash of the new password, made before the transaction; undefined where none is given. */
export type Hashed = { passwordHash?: string | undefined }

export async function hashPreviewPassword(
  hasher: PasswordHasher,
  settings: { previewPassword?: string } | undefined,
): Promise<string | undefined> {
  return settings?.previewPassword === undefined ? undefined : hasher.hash(settings.previewPassword)
}

type Preview = Pick<Project, 'previewProtection' | 'previewPasswordHash' | 'previewVersion'>

/** What changes besides the settings themselves. Another password or kind of protection ends what was opened before. */
export function previewChange(
  before: Preview,
  { previewProtection = before.previewProtection }: { previewProtection?: string },
  passwordHash: string | undefined,
): Partial<Preview> {
  if (previewProtection === 'password' && passwordHash === undefined && before.previewPasswordHash === null) {
    throw invalidField('#/settings/previewPassword', 'required', 'is required, because the project has no password yet')
  }
  if (passwordHash === undefined && previewProtection === before.previewProtection) return {}
  return {
    previewVersion: before.previewVersion + 1,
    ...(passwordHash !== undefined && { previewPasswordHash: passwordHash }),
  }
}

/** What a signature is bound to. */
export type PreviewKey = { projectId: string; version: number }

/** Of what may be seen: a deployment, or all of the project. */
export type Pass = { scope: string; expiresMs: number }

export const allPreviews = 'all'
/** The parameter of a link that has its signature. */
export const shareParameter = '__berth_share'

const purposes = { link: 'preview link', cookie: 'preview cookie' } as const
type Kind = keyof typeof purposes

const textOf = ({ projectId, version }: PreviewKey, scope: string, seconds: string) =>
  `${projectId} ${version} ${scope} ${seconds}`

export function signPass(vault: Vault, kind: Kind, key: PreviewKey, { scope, expiresMs }: Pass): string {
  const seconds = String(Math.floor(expiresMs / 1000))
  const signature = vault.sign(textOf(key, scope, seconds), purposes[kind])
  return `${scope}.${seconds}.${signature.toString('base64url')}`
}

/** Null if it was not made here for this project and version, or is over. */
export function readPass(vault: Vault, kind: Kind, key: PreviewKey, text: string): Pass | null {
  const [, scope, seconds, signature] = /^(all|dpl_[0-9a-z]{1,40})\.(\d{1,12})\.([\w-]{43})$/.exec(text) ?? []
  if (scope === undefined || seconds === undefined || signature === undefined) return null
  const expiresMs = Number(seconds) * 1000
  if (expiresMs <= Date.now()) return null
  const given = Buffer.from(signature, 'base64url')
  return vault.verify(given, textOf(key, scope, seconds), purposes[kind]) ? { scope, expiresMs } : null
}
