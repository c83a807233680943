// What NODE_ENV=production refuses; each sentence says what to set.
import { Type } from '@sinclair/typebox'
import { isBelow, Text, type Values } from './variables.ts'

export const productionVariables = {
  NODE_ENV: Text(),
  NODE_TLS_REJECT_UNAUTHORIZED: Text(),
  ALLOW_DEVELOPMENT_CA: Type.Boolean({ default: false }),
  ALLOW_TEST_NAMESERVERS: Type.Boolean({ default: false }),
  ALLOW_LOCALHOST: Type.Boolean({ default: false }),
}

type Environment = Values<typeof productionVariables> &
  Record<
    'DATABASE_URL' | 'SECRETS_KEY' | 'BUILD_SANDBOX' | 'TRUSTED_PROXIES' | 'ACME_DIRECTORY_URL' | 'DEPLOYMENT_DOMAIN',
    string
  >

type Settings = { baseUrl: string; nameservers: readonly string[]; tls: object | null; managedTlsHost: string | null }

export function productionFaults(env: Environment, { baseUrl, nameservers, tls, managedTlsHost }: Settings): string[] {
  const hosts = { DEPLOYMENT_DOMAIN: env.DEPLOYMENT_DOMAIN, BASE_URL: URL.parse(baseUrl)?.hostname ?? '' }
  const onLocalhost = Object.entries(hosts).filter(([, host]) => isBelow(host.toLowerCase(), 'localhost'))
  const sentences: (string | false)[] = [
    !env.DATABASE_URL && 'DATABASE_URL is required in production: the embedded database is for development.',
    !baseUrl.startsWith('https://') && 'BASE_URL must start with https:// in production.',
    !env.SECRETS_KEY && 'SECRETS_KEY is required in production; `openssl rand -base64 32` creates one.',
    env.BUILD_SANDBOX === 'none' && 'BUILD_SANDBOX=none runs builds unprotected, which production refuses.',
    env.NODE_TLS_REJECT_UNAUTHORIZED === '0' &&
      'NODE_TLS_REJECT_UNAUTHORIZED=0 lets anyone impersonate the artifact store or the certificate authority, which production refuses.',
    /\/0+\s*(,|$)/.test(env.TRUSTED_PROXIES) &&
      'TRUSTED_PROXIES must not be every address: any client could then forge its address and claim to use HTTPS.',
    tls === null &&
      managedTlsHost === null &&
      !env.TRUSTED_PROXIES &&
      'Production serves HTTPS only: set TLS_CERT_FILE and TLS_KEY_FILE, or TRUSTED_PROXIES, or a BASE_URL below DEPLOYMENT_DOMAIN, which gets a certificate of its own.',
    !env.ACME_DIRECTORY_URL &&
      !env.ALLOW_DEVELOPMENT_CA &&
      'No browser trusts the development CA: set ACME_DIRECTORY_URL, or ALLOW_DEVELOPMENT_CA=true if you want it.',
    nameservers.some((name) => isBelow(name, 'test')) &&
      !env.ALLOW_TEST_NAMESERVERS &&
      'No registrar delegates to names under .test: set NAMESERVERS to names of your own, or ALLOW_TEST_NAMESERVERS=true if you want these.',
    ...onLocalhost.map(
      ([name]) =>
        !env.ALLOW_LOCALHOST &&
        `localhost is every visitor’s own machine: set ${name} to a name of your own, or ALLOW_LOCALHOST=true if you want it.`,
    ),
  ]
  return sentences.filter((sentence) => sentence !== false)
}
