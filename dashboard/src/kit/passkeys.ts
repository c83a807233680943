// Passkeys: converts the server's options for the browser, and the browser's response for the server.

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

const decode = (encode: string) =>
  Uint8Array.from(atob(encode.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0))

function encode(buffer: ArrayBuffer | null): string | undefined {
  if (!buffer) return undefined
  const letters = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join('')
  return btoa(letters).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

const descriptors = (given: Descriptor[] = []) => given.map((one) => ({ ...one, id: decode(one.id) }))

/** Throws a NotAllowedError if the person refuses. */
export async function usePasskey(options: RequestOptions) {
  const publicKey = {
    ...options,
    challenge: decode(options.challenge),
    allowCredentials: descriptors(options.allowCredentials),
  } as PublicKeyCredentialRequestOptions
  const credential = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential
  const { clientDataJSON, authenticatorData, signature, userHandle } =
    credential.response as AuthenticatorAssertionResponse
  return credentialJson(credential, {
    clientDataJSON: encode(clientDataJSON),
    authenticatorData: encode(authenticatorData),
    signature: encode(signature),
    userHandle: encode(userHandle),
  })
}

/** Creates a passkey on the device. */
export async function createPasskey(options: CreationOptions) {
  const publicKey = {
    ...options,
    challenge: decode(options.challenge),
    user: { ...options.user, id: decode(options.user.id) },
    excludeCredentials: descriptors(options.excludeCredentials),
  } as unknown as PublicKeyCredentialCreationOptions
  const credential = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential
  const response = credential.response as AuthenticatorAttestationResponse
  return credentialJson(credential, {
    clientDataJSON: encode(response.clientDataJSON),
    attestationObject: encode(response.attestationObject),
    transports: response.getTransports?.() ?? [],
  })
}

function credentialJson(credential: PublicKeyCredential, response: object) {
  const { id, type, authenticatorAttachment } = credential
  const extensions = credential.getClientExtensionResults()
  return { id, rawId: id, type, response, authenticatorAttachment, clientExtensionResults: extensions }
}

/** Turns an error of the browser into a message for people. */
export function passkeyProblem(error: unknown): unknown {
  const { name } = error as Error
  if (name === 'NotAllowedError' || name === 'AbortError') return new Error('No passkey was used. Try again.')
  if (name === 'InvalidStateError') return new Error('This device already has your passkey.')
  if (name === 'SecurityError') return new Error('Passkeys work only at the URL they were created for.')
  return error
}
