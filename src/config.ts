// The only reader of the environment: names, defaults, and the refusal to start when they are unsafe.
import { existsSync } from 'node:fs'
import { availableParallelism, hostname } from 'node:os'
import { resolve } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { isBelow, refusals } from './platform/production.ts'
import { type Limits, type QuotaName, quotaNames, quotas, quotaVariable, withinCeilings } from './schemas/quotas.ts'

const Port = (fallback: number) => Type.Integer({ minimum: 0, maximum: 65535, default: fallback })
const Text = (fallback = '') => Type.String({ default: fallback })
const List = (fallback = '') => Type.String({ default: fallback, description: 'comma-separated' })

/** How long or how many; 0 and `never` stand for all, for ever. */
const Kept = (fallback: number) => Type.String({ pattern: '^(never|\\d{1,5})$', default: String(fallback) })

const Quotas = Object.fromEntries(
  quotaNames.map((name) => [
    quotaVariable(name),
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: quotas[name].max }),
  ]),
)

const Environment = Type.Object({
  ...Quotas,
  NODE_ENV: Text(),
  NODE_TLS_REJECT_UNAUTHORIZED: Text(),
  ALLOW_DEVELOPMENT_CA: Type.Boolean({ default: false }),
  ALLOW_TEST_NAMESERVERS: Type.Boolean({ default: false }),
  ALLOW_LOCALHOST: Type.Boolean({ default: false }),
  DATABASE_URL: Text(),
  DATABASE_POOL: Type.Integer({ minimum: 2, maximum: 500, default: 10 }),
  DATABASE_WORKER_POOL: Type.Integer({ minimum: 4, maximum: 500, default: 10 }),
  DATABASE_LOCK_TIMEOUT_MS: Type.Integer({ minimum: 100, maximum: 10_000, default: 1_000 }),
  DATA_DIR: Text('.berth'),
  HOST: Text('127.0.0.1'),
  PORT: Port(3000),
  BASE_URL: Text(),
  TLS_CERT_FILE: Text(),
  TLS_KEY_FILE: Text(),
  TRUSTED_PROXIES: List(),
  CORS_ORIGINS: List('*'),
  EDGE_HTTP_PORT: Port(8080),
  EDGE_HTTPS_PORT: Port(8443),
  DEPLOYMENT_DOMAIN: Text('localhost'),
  EDGE_ADDRESSES: List('127.0.0.1'),
  RUNNER_LISTEN: Text('127.0.0.1:0'),
  RUNNER_ADDRESS: Text(),
  NAMESERVERS: List('ns1.berth.test,ns2.berth.test'),
  NAMESERVER_LISTEN: List('127.0.0.1:5300,127.0.0.1:5301'),
  NAMESERVER_SECONDARIES: List(),
  NAMESERVER_TSIG: Text(),
  NAMESERVER_WORKERS: Type.Optional(Type.Integer({ minimum: 0, maximum: 256 })),
  DNS_RESOLVERS: List(),
  DNSSEC: Type.Union([Type.Literal('on'), Type.Literal('off')], { default: 'on' }),
  ACME_DIRECTORY_URL: Text(),
  ACME_EMAIL: Text(),
  ACME_CA_FILE: Text(),
  ACME_EAB: Text(),
  GIT_URL_TEMPLATE: Text('https://github.com/{repo}.git'),
  REGION: Text('local-1'),
  ARTIFACTS_URL: Text(),
  ARTIFACTS_ENDPOINT: Text(),
  ARTIFACTS_REGION: Text('us-east-1'),
  ARTIFACTS_ACCESS_KEY: Text(),
  ARTIFACTS_SECRET_KEY: Text(),
  ARTIFACTS_CACHE_MB: Type.Integer({ minimum: 16, default: 10_240 }),
  BUILD_CONCURRENCY: Type.Integer({ minimum: 1, default: 2 }),
  BUILD_TIMEOUT_MS: Type.Integer({ minimum: 1000, default: 900_000 }),
  BUILD_MEMORY_MB: Type.Integer({ minimum: 64, default: 2048 }),
  BUILD_CACHE_MB: Type.Integer({ minimum: 0, default: 10_240 }),
  DISK_RESERVE_MB: Type.Integer({ minimum: 0, default: 512 }),
  BUILD_SANDBOX: Type.Union([Type.Literal('auto'), Type.Literal('bubblewrap'), Type.Literal('none')], {
    default: 'auto',
  }),
  RETENTION_EVENTS_MONTHS: Kept(13),
  RETENTION_LOG_DAYS: Kept(90),
  RETENTION_PREVIEWS: Kept(10),
  RETENTION_PREVIEW_DAYS: Kept(30),
  RETENTION_DELETED_BRANCH_HOURS: Kept(24),
  RETENTION_DELIVERY_DAYS: Kept(30),
  RETENTION_FAILED_JOB_DAYS: Kept(30),
  SECRETS_KEY: Text(),
  SECRETS_KEY_OLD: List(),
  RATE_LIMIT_PER_MINUTE: Type.Integer({ minimum: 1, default: 600 }),
  RATE_LIMIT_PER_ACCOUNT_PER_MINUTE: Type.Optional(Type.Integer({ minimum: 1 })),
  MAX_IN_FLIGHT: Type.Integer({ minimum: 1, default: 1000 }),
  MAX_IN_FLIGHT_PER_ACCOUNT: Type.Optional(Type.Integer({ minimum: 1 })),
  MAX_WAITS: Type.Integer({ minimum: 1, default: 10_000 }),
  MAX_STREAMS: Type.Integer({ minimum: 1, default: 10_000 }),
  SMTP_URL: Text(),
  MAIL_FROM: Text(),
  WEBHOOK_ALLOW_PRIVATE: Type.Boolean({ default: false }),
  PATH: Text('/usr/local/bin:/usr/bin:/bin'),
  METRICS_PORT: Port(9090),
  WORKERS: Type.String({ pattern: '^(auto|\\d{1,3})$', default: '0' }),
  MIGRATE: Type.Optional(Type.Boolean()),
  NODE_NAME: Text(),
  NODE_ADDRESS: Text(),
  DRAIN_SECONDS: Type.Integer({ minimum: 0, maximum: 3600, default: 5 }),
  OTEL_EXPORTER_OTLP_ENDPOINT: Text(),
  OIDC_ISSUER: Text(),
  OIDC_CLIENT_ID: Text(),
  OIDC_CLIENT_SECRET: Text(),
  OIDC_NAME: Text(),
  OIDC_ALLOW_SIGNUP: Type.Boolean({ default: false }),
  LOG_LEVEL: Type.Union(
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((level) => Type.Literal(level)),
    { default: 'info' },
  ),
  LOG_FORMAT: Type.Optional(Type.Union([Type.Literal('json'), Type.Literal('pretty')])),
  NO_COLOR: Text(),
})

/** Every name that is read from the environment. */
export const variableNames: readonly string[] = Object.keys(Environment.properties)

const hostName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$/

export class ConfigError extends Error {}

export type Config = ReturnType<typeof loadConfig>

function list(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** `auto`: one for each processor that this process may use. */
export function workerCount(text: string): number {
  return text === 'auto' ? availableParallelism() : Number(text)
}

/** Null for ever. */
function kept(text: string): number | null {
  return text === 'never' || Number(text) === 0 ? null : Number(text)
}

function secretKey(name: string, text: string): Buffer {
  const key = Buffer.from(text, 'base64')
  if (key.length !== 32)
    throw new ConfigError(`${name} must be 32 bytes in base64; \`openssl rand -base64 32\` makes one.`)
  return key
}

/** `name:secret`, the secret in base64; the algorithm is hmac-sha256. */
function tsigKey(text: string): { name: string; secret: Buffer } {
  const [name = '', secret = ''] = text.split(':')
  const bytes = Buffer.from(secret, 'base64')
  if (!/^[a-z0-9.-]+$/i.test(name) || bytes.length < 16) {
    throw new ConfigError('NAMESERVER_TSIG must be <name>:<secret>, the secret at least 16 bytes in base64.')
  }
  return { name: name.toLowerCase().replace(/\.$/, ''), secret: bytes }
}

/** `kid:key`, the key in base64url as the authority gave it. */
function externalAccount(text: string): { kid: string; key: string } {
  const at = text.lastIndexOf(':')
  if (at < 1 || !/^[A-Za-z0-9_-]+=*$/.test(text.slice(at + 1))) {
    throw new ConfigError('ACME_EAB must be <key id>:<key>, the key in base64url as the authority gave it.')
  }
  return { kid: text.slice(0, at), key: text.slice(at + 1) }
}

/** `s3://bucket` or `s3://bucket/prefix`; null if it is neither. The prefix is empty or ends with a slash. */
function bucketOf(text: string): { bucket: string; prefix: string } | null {
  const found = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[\w.-]*[\w-])*)\/?$/.exec(text)
  return found && { bucket: found[1]!, prefix: found[2] ? `${found[2].slice(1)}/` : '' }
}

/** Null if it is none. No fault names the text: it may have a password. */
function mailServer(text: string) {
  const url = URL.parse(text)
  if (
    !url ||
    !/^smtps?:$/.test(url.protocol) ||
    !url.hostname ||
    !/^\/?$/.test(url.pathname) ||
    url.search ||
    url.hash
  ) {
    return null
  }
  const secure = url.protocol === 'smtps:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const [user, pass] = [decoded(url.username), decoded(url.password)]
  if (user === null || pass === null) return null
  return { host, port: Number(url.port) || (secure ? 465 : 587), secure, auth: user ? { user, pass } : null }
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** `ada@example.com` or `Ada <ada@example.com>`; null if it is neither. */
function mailbox(text: string): { name: string; address: string } | null {
  const found = /^(?:"?([^"<>\p{Cc}]*?)"?\s*<)?([^\s<>"@\p{Cc}]+@[a-z0-9.-]+)>?$/iu.exec(text)
  return found && (found[1] !== undefined) === text.endsWith('>') ? { name: found[1] ?? '', address: found[2]! } : null
}

/** `address:port`; an IPv6 address in brackets. */
function socketAddress(name: string, text: string): { host: string; port: number } {
  const [, host, port] = /^(\[[0-9a-f:.]+\]|[^\s:[\]]+):(\d{1,5})$/i.exec(text) ?? []
  if (host === undefined || Number(port) > 65535)
    throw new ConfigError(`${name} must be <address>:<port>, got ${text}.`)
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

/** The host of an https address if it is a name of ours; null for any other. */
function hostBelow(url: string, domain: string): string | null {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: '', hostname: '' }
  return protocol === 'https:' && isBelow(hostname, domain.toLowerCase()) ? hostname : null
}

/** An address that may be asked for who somebody is: over plain HTTP only on this machine. */
function isIssuer(text: string, production: boolean): boolean {
  const { protocol, hostname, search, hash } = URL.canParse(text) ? new URL(text) : new URL('none:')
  if (search || hash) return false
  return (
    protocol === 'https:' ||
    (protocol === 'http:' && !production && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname))
  )
}

/** As a browser sends it: scheme, host and port, and nothing after them. */
function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text
}

/** Reads the given environment; an empty variable counts as unset. Throws ConfigError with one sentence per fault. */
export function loadConfig(source: Record<string, string | undefined>) {
  const given = Object.fromEntries(
    Object.keys(Environment.properties)
      .filter((name) => source[name] !== undefined && source[name] !== '')
      .map((name) => [name, source[name]]),
  )
  const candidate = Value.Default(Environment, Value.Convert(Environment, given))
  const faults = [...Value.Errors(Environment, candidate)].map(
    (error) =>
      `${error.path.slice(1)} is not valid: ${error.message.toLowerCase()}, got ${JSON.stringify(error.value)}.`,
  )
  if (faults.length > 0) throw new ConfigError([...new Set(faults)].join('\n'))
  const env = candidate as Static<typeof Environment>
  const quotaOf = (name: QuotaName) => (candidate as Record<string, number>)[quotaVariable(name)]

  const production = env.NODE_ENV === 'production'
  const tls = env.TLS_CERT_FILE && env.TLS_KEY_FILE ? { certFile: env.TLS_CERT_FILE, keyFile: env.TLS_KEY_FILE } : null
  const baseUrl = (env.BASE_URL || `${tls ? 'https' : 'http'}://localhost:${env.PORT}`).replace(/\/+$/, '')
  const unsafe: string[] = []
  if (!URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol))
    unsafe.push('BASE_URL must be an http(s) URL.')
  if (!env.TLS_CERT_FILE !== !env.TLS_KEY_FILE) unsafe.push('TLS_CERT_FILE and TLS_KEY_FILE go together.')
  if (!env.GIT_URL_TEMPLATE.includes('{repo}')) unsafe.push('GIT_URL_TEMPLATE must contain {repo}.')
  if (env.NAMESERVER_SECONDARIES && !env.NAMESERVER_TSIG) unsafe.push('NAMESERVER_SECONDARIES needs NAMESERVER_TSIG.')
  const nameservers = list(env.NAMESERVERS).map((name) => name.toLowerCase().replace(/\.$/, ''))
  if (nameservers.length < 2 || nameservers.length > 26 || new Set(nameservers).size !== nameservers.length) {
    unsafe.push('NAMESERVERS must name 2 to 26 different hosts.')
  }
  const malformed = nameservers.find((name) => !hostName.test(name))
  if (malformed !== undefined) unsafe.push(`NAMESERVERS must be host names, and ${malformed} is none.`)
  if (env.ACME_DIRECTORY_URL && !/^https:\/\//.test(env.ACME_DIRECTORY_URL)) {
    unsafe.push('ACME_DIRECTORY_URL must start with https://.')
  }
  if (env.OTEL_EXPORTER_OTLP_ENDPOINT && !/^https?:\/\/[^?#]+$/.test(env.OTEL_EXPORTER_OTLP_ENDPOINT)) {
    unsafe.push('OTEL_EXPORTER_OTLP_ENDPOINT must be an http(s) URL, such as http://localhost:4318.')
  }
  const oidc = [env.OIDC_ISSUER, env.OIDC_CLIENT_ID, env.OIDC_CLIENT_SECRET]
  if (oidc.some((value) => value) && !oidc.every((value) => value)) {
    unsafe.push('OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET go together.')
  }
  if (env.OIDC_ISSUER && !isIssuer(env.OIDC_ISSUER, production)) {
    unsafe.push('OIDC_ISSUER must start with https://, and have neither query nor fragment.')
  }
  const store = env.ARTIFACTS_URL ? bucketOf(env.ARTIFACTS_URL) : null
  const endpoint = env.ARTIFACTS_ENDPOINT || `https://s3.${env.ARTIFACTS_REGION}.amazonaws.com`
  if (env.ARTIFACTS_URL && !store) unsafe.push('ARTIFACTS_URL must be s3://<bucket> or s3://<bucket>/<prefix>.')
  if (env.ARTIFACTS_URL && !(env.ARTIFACTS_ACCESS_KEY && env.ARTIFACTS_SECRET_KEY)) {
    unsafe.push('ARTIFACTS_URL needs ARTIFACTS_ACCESS_KEY and ARTIFACTS_SECRET_KEY.')
  }
  if (!URL.canParse(endpoint) || !/^https?:\/\/[^/?#@]+(\/[\w./-]*)?$/.test(endpoint)) {
    unsafe.push('ARTIFACTS_ENDPOINT must be an http(s) URL, such as https://s3.example.com.')
  }
  const smtp = env.SMTP_URL ? mailServer(env.SMTP_URL) : null
  if (env.SMTP_URL && !smtp) {
    unsafe.push('SMTP_URL must be smtp://<host> or smtps://<host>, with <user>:<password>@ and :<port> where needed.')
  }
  const sender = mailbox(env.MAIL_FROM || `Berth <berth@${URL.parse(baseUrl)?.hostname}>`)
  if ((env.MAIL_FROM || smtp) && !sender)
    unsafe.push('MAIL_FROM must be an address, such as Berth <berth@example.com>.')
  const corsOrigins = list(env.CORS_ORIGINS).filter((origin) => origin !== 'none')
  const notAnOrigin = corsOrigins.find((origin) => origin !== '*' && !isOrigin(origin))
  if (notAnOrigin !== undefined) {
    unsafe.push(`CORS_ORIGINS must be *, none, or origins such as https://app.example.com, and ${notAnOrigin} is none.`)
  }
  const runner = socketAddress('RUNNER_LISTEN', env.RUNNER_LISTEN)
  if (env.RUNNER_ADDRESS && !/^(\[[0-9a-f:.]+\]|[^\s:[\]]+)(:\d{1,5})?$/i.test(env.RUNNER_ADDRESS)) {
    unsafe.push('RUNNER_ADDRESS must be <host>:<port>, or a host alone if the port is that of RUNNER_LISTEN.')
  }
  if (/^(0\.0\.0\.0|::)$/.test(runner.host) && !env.RUNNER_ADDRESS) {
    unsafe.push('RUNNER_ADDRESS must say where edges reach this machine, because RUNNER_LISTEN is every address of it.')
  }
  const managedTlsHost = tls || env.TRUSTED_PROXIES ? null : hostBelow(baseUrl, env.DEPLOYMENT_DOMAIN)
  if (production) unsafe.push(...refusals(env, { baseUrl, nameservers, encrypts: !!tls || managedTlsHost !== null }))
  if (unsafe.length > 0) throw new ConfigError(unsafe.join('\n'))

  return {
    production,
    databaseUrl: env.DATABASE_URL || null,
    /** Connections for requests, and for everything else. */
    databasePool: env.DATABASE_POOL,
    databaseWorkerPool: env.DATABASE_WORKER_POOL,
    /** How long a statement of a request may wait for a lock. */
    databaseLockTimeoutMs: env.DATABASE_LOCK_TIMEOUT_MS,
    dataDir: resolve(env.DATA_DIR),
    host: env.HOST,
    port: env.PORT,
    baseUrl,
    tls,
    /** The API's host, if its certificate is managed like a domain's; the listener then uses TLS with it. */
    managedTlsHost,
    trustedProxies: list(env.TRUSTED_PROXIES),
    /** Origins whose pages may use the API from a browser; `*`: all. */
    corsOrigins,
    edge: {
      httpPort: env.EDGE_HTTP_PORT,
      httpsPort: env.EDGE_HTTPS_PORT,
      domain: env.DEPLOYMENT_DOMAIN,
      addresses: list(env.EDGE_ADDRESSES),
    },
    /** Where a runner listens for edges, and where they reach it; null: there. */
    runner: { ...runner, address: env.RUNNER_ADDRESS || null },
    /** The pool, in lower case: every claim to a domain gets two of them. */
    nameservers,
    nameserverListen: list(env.NAMESERVER_LISTEN),
    /** `address:port` of the servers that are notified and may transfer zones. */
    nameserverSecondaries: list(env.NAMESERVER_SECONDARIES),
    nameserverTsig: env.NAMESERVER_TSIG ? tsigKey(env.NAMESERVER_TSIG) : null,
    /** Threads that answer over UDP, 0 for none of their own; null: one per processor where there is no other role. */
    nameserverWorkers: env.NAMESERVER_WORKERS ?? null,
    /** Resolvers for names outside the platform; empty: the system's. */
    dnsResolvers: list(env.DNS_RESOLVERS),
    /** Whether domains that are delegated here are signed unless their owners say otherwise. */
    dnssec: env.DNSSEC === 'on',
    /** Null: the internal development CA signs. */
    acme: env.ACME_DIRECTORY_URL
      ? {
          directoryUrl: env.ACME_DIRECTORY_URL,
          email: env.ACME_EMAIL || null,
          caFile: env.ACME_CA_FILE || null,
          eab: env.ACME_EAB ? externalAccount(env.ACME_EAB) : null,
        }
      : null,
    /** The bucket that all machines share; null: the directory of this machine. */
    artifacts: store && {
      ...store,
      endpoint,
      region: env.ARTIFACTS_REGION,
      accessKey: env.ARTIFACTS_ACCESS_KEY,
      secretKey: env.ARTIFACTS_SECRET_KEY,
      /** How much of it this machine keeps on its disk. */
      cacheMb: env.ARTIFACTS_CACHE_MB,
    },
    gitUrlTemplate: env.GIT_URL_TEMPLATE,
    region: env.REGION,
    build: {
      concurrency: env.BUILD_CONCURRENCY,
      timeoutMs: env.BUILD_TIMEOUT_MS,
      memoryMb: env.BUILD_MEMORY_MB,
      /** Highest total size of all build caches on this machine. */
      cacheMb: env.BUILD_CACHE_MB,
      sandbox: env.BUILD_SANDBOX,
    },
    /** Free space of the data directory's disk below which no build starts. */
    diskReserveMb: env.DISK_RESERVE_MB,
    /** How long things are kept; null: for ever. */
    retention: {
      /** Whole months beside the current one. */
      eventsMonths: kept(env.RETENTION_EVENTS_MONTHS),
      logDays: kept(env.RETENTION_LOG_DAYS),
      /** Of each project. */
      previews: kept(env.RETENTION_PREVIEWS),
      previewDays: kept(env.RETENTION_PREVIEW_DAYS),
      /** Previews of a branch, once it is deleted. */
      deletedBranchHours: kept(env.RETENTION_DELETED_BRANCH_HOURS),
      deliveryDays: kept(env.RETENTION_DELIVERY_DAYS),
      failedJobDays: kept(env.RETENTION_FAILED_JOB_DAYS),
    },
    secretsKey: env.SECRETS_KEY ? secretKey('SECRETS_KEY', env.SECRETS_KEY) : null,
    oldSecretsKeys: list(env.SECRETS_KEY_OLD).map((text) => secretKey('SECRETS_KEY_OLD', text)),
    rateLimitPerMinute: env.RATE_LIMIT_PER_MINUTE,
    /** What an account may have where the operator has set nothing else for it. */
    quotas: withinCeilings(Object.fromEntries(quotaNames.map((name) => [name, quotaOf(name)])) as Limits),
    /** Of all tokens of an account together. */
    rateLimitPerAccountPerMinute: env.RATE_LIMIT_PER_ACCOUNT_PER_MINUTE ?? 3 * env.RATE_LIMIT_PER_MINUTE,
    maxInFlight: env.MAX_IN_FLIGHT,
    /** Requests that one account may have open at once, from its token to the last byte of the answer. */
    maxInFlightPerAccount: env.MAX_IN_FLIGHT_PER_ACCOUNT ?? Math.ceil(env.MAX_IN_FLIGHT / 10),
    /** Waits and streams of all accounts that one server holds at once. */
    maxWaits: env.MAX_WAITS,
    maxStreams: env.MAX_STREAMS,
    /** Null: no mails are sent. */
    mail: smtp && sender && { ...smtp, from: sender },
    webhookAllowPrivate: env.WEBHOOK_ALLOW_PRIVATE,
    metricsPort: env.METRICS_PORT,
    /** Worker processes for api and edge; 0: none. */
    workers: workerCount(env.WORKERS),
    /** Whether a start applies migrations; null: outside production, and where all roles run in one process. */
    migrate: env.MIGRATE ?? null,
    /** What this process is called among the nodes; its processes share the name of a machine. */
    nodeName: env.NODE_NAME || hostname(),
    /** Where others reach this machine; null: it is not told. */
    nodeAddress: env.NODE_ADDRESS || null,
    /** How long a process still serves after SIGTERM, so that balancers find out that it stops. */
    drainSeconds: env.DRAIN_SECONDS,
    /** Who else knows who somebody is; null: nobody. */
    oidc: env.OIDC_ISSUER
      ? {
          issuer: env.OIDC_ISSUER,
          clientId: env.OIDC_CLIENT_ID,
          clientSecret: env.OIDC_CLIENT_SECRET,
          /** On the button. */
          name: env.OIDC_NAME || new URL(env.OIDC_ISSUER).hostname,
          /** Whether people may come whom nobody has invited. */
          allowSignup: env.OIDC_ALLOW_SIGNUP,
        }
      : null,
    /** Base address of the collector of traces; null: no traces. */
    tracesEndpoint: env.OTEL_EXPORTER_OTLP_ENDPOINT || null,
    /** Where git and the build tools are found. */
    searchPath: env.PATH,
    logLevel: env.LOG_LEVEL,
    /** Null: `pretty` on a terminal. */
    logFormat: env.LOG_FORMAT ?? null,
    colour: env.NO_COLOR === '',
    /** With an embedded database somebody tries Berth out at a terminal, and wants to see what is worth a look. */
    requestLogLevel: env.DATABASE_URL ? ('info' as const) : ('debug' as const),
  }
}

/** The process's environment, with defaults from `.env` in the working directory. */
export function readEnvironment(): Record<string, string | undefined> {
  if (existsSync('.env')) process.loadEnvFile('.env')
  return process.env
}
