// Where the API listens, and the URL that clients use.
import { isBelow, List, list, Port, type Refuse, Text, type Values } from './variables.ts'

export const apiVariables = {
  HOST: Text('127.0.0.1'),
  PORT: Port(3000),
  BASE_URL: Text(),
  TLS_CERT_FILE: Text(),
  TLS_KEY_FILE: Text(),
  TRUSTED_PROXIES: List(),
  CORS_ORIGINS: List('*'),
}

type Environment = Values<typeof apiVariables> & { DEPLOYMENT_DOMAIN: string }

export function apiSettings(env: Environment, refuse: Refuse) {
  const tls = env.TLS_CERT_FILE && env.TLS_KEY_FILE ? { certFile: env.TLS_CERT_FILE, keyFile: env.TLS_KEY_FILE } : null
  const baseUrl = (env.BASE_URL || `${tls ? 'https' : 'http'}://localhost:${env.PORT}`).replace(/\/+$/, '')
  if (!/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? '')) refuse('BASE_URL must be an http(s) URL.')
  if (!env.TLS_CERT_FILE !== !env.TLS_KEY_FILE) refuse('TLS_CERT_FILE and TLS_KEY_FILE go together.')
  const corsOrigins = list(env.CORS_ORIGINS).filter((origin) => origin !== 'none')
  const malformed = corsOrigins.find((origin) => origin !== '*' && !isOrigin(origin))
  if (malformed !== undefined) {
    refuse(`CORS_ORIGINS must be *, none, or origins such as https://app.example.com, got ${malformed}.`)
  }
  return {
    host: env.HOST,
    port: env.PORT,
    baseUrl,
    tls,
    /** The API's host, if its certificate is managed like a domain's; the listener then uses TLS with it. */
    managedTlsHost: tls || env.TRUSTED_PROXIES ? null : httpsHostBelow(env.DEPLOYMENT_DOMAIN, baseUrl),
    trustedProxies: list(env.TRUSTED_PROXIES),
    /** Origins whose pages may use the API from a browser; `*`: all. */
    corsOrigins,
  }
}

/** As a browser sends it: scheme, host and port, and nothing after them. */
function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.parse(text)?.origin === text
}

function httpsHostBelow(domain: string, text: string): string | null {
  const url = URL.parse(text)
  return url?.protocol === 'https:' && isBelow(url.hostname, domain.toLowerCase()) ? url.hostname : null
}
