// Settings that NODE_ENV=production refuses, each with a sentence that says what to set.

type Environment = Record<
  | ('DATABASE_URL' | 'SECRETS_KEY' | 'BUILD_SANDBOX' | 'TRUSTED_PROXIES' | 'ACME_DIRECTORY_URL' | 'DEPLOYMENT_DOMAIN')
  | 'NODE_TLS_REJECT_UNAUTHORIZED',
  string
> &
  Record<'ALLOW_DEVELOPMENT_CA' | 'ALLOW_TEST_NAMESERVERS' | 'ALLOW_LOCALHOST', boolean>

type Derived = {
  baseUrl: string
  nameservers: readonly string[]
  /** Whether the API serves TLS itself. */
  encrypts: boolean
}

/** Whether `name` is `domain` or below it. */
export function isBelow(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`)
}

export function refusals(env: Environment, { baseUrl, nameservers, encrypts }: Derived): string[] {
  const local = { DEPLOYMENT_DOMAIN: env.DEPLOYMENT_DOMAIN, BASE_URL: URL.parse(baseUrl)?.hostname ?? '' }
  const onLocalhost = Object.entries(local).filter(([, host]) => isBelow(host.toLowerCase(), 'localhost'))
  const sentences: (string | false)[] = [
    !env.DATABASE_URL && 'DATABASE_URL is required in production: the embedded database is for development.',
    !baseUrl.startsWith('https://') && 'BASE_URL must start with https:// in production.',
    !env.SECRETS_KEY && 'SECRETS_KEY is required in production; `openssl rand -base64 32` makes one.',
    env.BUILD_SANDBOX === 'none' && 'BUILD_SANDBOX=none runs builds unprotected, which production refuses.',
    env.NODE_TLS_REJECT_UNAUTHORIZED === '0' &&
      'NODE_TLS_REJECT_UNAUTHORIZED=0 believes whoever claims to be the artifact store or the authority, which production refuses.',
    /\/0+\s*(,|$)/.test(env.TRUSTED_PROXIES) &&
      'TRUSTED_PROXIES must not be every address: whoever asks could say where a request comes from, and that it was encrypted.',
    !encrypts &&
      !env.TRUSTED_PROXIES &&
      'Production serves HTTPS only: set TLS_CERT_FILE and TLS_KEY_FILE, or TRUSTED_PROXIES, or a BASE_URL below DEPLOYMENT_DOMAIN, which gets a certificate of its own.',
    !env.ACME_DIRECTORY_URL &&
      !env.ALLOW_DEVELOPMENT_CA &&
      'No browser trusts the development CA: set ACME_DIRECTORY_URL, or ALLOW_DEVELOPMENT_CA=true if that is meant.',
    nameservers.some((name) => isBelow(name, 'test')) &&
      !env.ALLOW_TEST_NAMESERVERS &&
      'No registrar delegates to names under .test: set NAMESERVERS to names of your own, or ALLOW_TEST_NAMESERVERS=true if that is meant.',
    ...onLocalhost.map(
      ([name]) =>
        !env.ALLOW_LOCALHOST &&
        `localhost is every visitor’s own machine: set ${name} to a name of your own, or ALLOW_LOCALHOST=true if that is meant.`,
    ),
  ]
  return sentences.filter((sentence) => sentence !== false)
}
