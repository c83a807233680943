// SSH keys: creates deploy keys in OpenSSH's format, parses host keys, and knows those of popular repository hosts.
import { generateKeyPairSync, randomBytes } from 'node:crypto'

/** A length and the bytes, as SSH encodes strings (RFC 4251). */
function field(octets: Buffer | string): Buffer {
  const body = Buffer.from(octets as string)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length)
  return Buffer.concat([length, body])
}

const type = 'ssh-ed25519'

export type DeployKey = { publicKey: string; privateKey: string }

/** An Ed25519 key. OpenSSH before 9.6 can't read its private key in other formats. */
export function newDeployKey(comment: string): DeployKey {
  const { privateKey } = generateKeyPairSync('ed25519')
  const { x, d } = privateKey.export({ format: 'jwk' })
  const open = Buffer.from(x!, 'base64url')
  const blob = Buffer.concat([field(type), field(open)])
  const check = randomBytes(4)
  const secret = Buffer.concat([
    ...[check, check, field(type), field(open)],
    ...[field(Buffer.concat([Buffer.from(d!, 'base64url'), open])), field(comment)],
  ])
  const padding = Buffer.from(Array.from({ length: (8 - (secret.length % 8)) % 8 }, (_, index) => index + 1))
  const one = Buffer.from([0, 0, 0, 1])
  const whole = Buffer.concat([
    ...[Buffer.from('openssh-key-v1\0'), field('none'), field('none'), field('')],
    ...[one, field(blob), field(Buffer.concat([secret, padding]))],
  ])
  const lines = whole.toString('base64').match(/.{1,70}/g)!
  return {
    publicKey: `${type} ${blob.toString('base64')} ${comment}`,
    privateKey: `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join('\n')}\n-----END OPENSSH PRIVATE KEY-----\n`,
  }
}

const hostKeyTypes = [type, 'ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521', 'ssh-rsa']

export const hostKeyPattern = `^(${hostKeyTypes.join('|')}) [A-Za-z0-9+/]{40,2000}={0,2}$`

/** Whether the key's data starts with the type that precedes it. */
export function isHostKey(line: string): boolean {
  const [name = '', text = ''] = line.split(' ')
  const octets = Buffer.from(text, 'base64')
  return octets.subarray(0, 4 + name.length).equals(field(name)) && octets.length > 4 + name.length
}

/** The host keys in a file of known hosts. */
export function hostKeysIn(knownHosts: string): string[] {
  const keys = knownHosts.split('\n').map((line) => line.split(' ').slice(1, 3).join(' '))
  return [...new Set(keys.filter((key) => new RegExp(hostKeyPattern).test(key) && isHostKey(key)))].sort()
}

// As published by these hosts.
const known: Record<string, string> = {
  'github.com': 'AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl',
  'gitlab.com': 'AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf',
  'bitbucket.org': 'AAAAC3NzaC1lZDI1NTE5AAAAIIazEu89wgQZ4bqs3d63QSMzYVa0MuJ2e2gKTKqu+UUO',
  'codeberg.org': 'AAAAC3NzaC1lZDI1NTE5AAAAIIVIC02vnjFyL+I4RHfvIGNtOgJMe769VTF1VR4EB3ZB',
}

/** The host keys that come with Berth; empty if it has none. */
export function knownHostKeys(origin: string): string[] {
  const key = known[origin.replace(/^ssh:\/\//, '')]
  return key ? [`${type} ${key}`] : []
}
