// Passkeys: the options of the server as the browser wants them, and its answer as the server wants it.

type Descriptor = { id: string; type: string; transports?: string[] }
export type RequestOptions = {
  challenge: string
  allowCredentials?: Descriptor[]
  rpId?: string
  timeout?: number
  userVerification?: string
}
export type CreationOptions = {
  challenge: string
  user: { id: string; name: string; displayName: string }
  excludeCredentials?: Descriptor[]
}

export const hasPasskeys = () => typeof PublicKeyCredential === 'function'

const octets = (text: string) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0))

function text(buffer: ArrayBuffer | null): string | undefined {
  if (!buffer) return undefined
  const letters = Array.from(new Uint8Array(buffer), (octet) => String.fromCharCode(octet)).join('')
  return btoa(letters).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

const descriptors = (given: Descriptor[] = []) => given.map((one) => ({ ...one, id: octets(one.id) }))

/** Asks for a passkey. Throws a NotAllowedError where the person refuses. */
export async function usePasskey(options: RequestOptions) {
  const publicKey = {
    ...options,
    challenge: octets(options.challenge),
    allowCredentials: descriptors(options.allowCredentials),
  } as PublicKeyCredentialRequestOptions
  const credential = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential
  const { clientDataJSON, authenticatorData, signature, userHandle } =
    credential.response as AuthenticatorAssertionResponse
  return answer(credential, {
    clientDataJSON: text(clientDataJSON),
    authenticatorData: text(authenticatorData),
    signature: text(signature),
    userHandle: text(userHandle),
  })
}

/** Has the device make a passkey. */
export async function makePasskey(options: CreationOptions) {
  const publicKey = {
    ...options,
    challenge: octets(options.challenge),
    user: { ...options.user, id: octets(options.user.id) },
    excludeCredentials: descriptors(options.excludeCredentials),
  } as unknown as PublicKeyCredentialCreationOptions
  const credential = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential
  const response = credential.response as AuthenticatorAttestationResponse
  return answer(credential, {
    clientDataJSON: text(response.clientDataJSON),
    attestationObject: text(response.attestationObject),
    transports: response.getTransports?.() ?? [],
  })
}

function answer(credential: PublicKeyCredential, response: object) {
  const { id, type, authenticatorAttachment } = credential
  const extensions = credential.getClientExtensionResults()
  return { id, rawId: id, type, response, authenticatorAttachment, clientExtensionResults: extensions }
}

/** What the browser says when a person does not go on, in words. */
export function passkeyProblem(error: unknown): unknown {
  const { name } = error as Error
  if (name === 'NotAllowedError' || name === 'AbortError')
    return new Error('No passkey was used. Try again, or use another way.')
  if (name === 'InvalidStateError') return new Error('This device already has your passkey.')
  if (name === 'SecurityError') return new Error('These passkeys belong to another address.')
  return error
}
