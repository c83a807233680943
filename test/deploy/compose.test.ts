// The image and compose.yaml: every role, its settings, its ports, and its rights.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { ABSENT, REFUSED } from '../../src/sandbox/seccomp.ts'
import {
  composeText,
  environmentOf,
  readCompose,
  readEnvFile,
  root,
  type Values,
  variablesOf,
} from '../image/compose.ts'
import { read, roles, sandboxed, unknownOf } from './known.ts'

/** Read by compose alone. */
const ofCompose = ['POSTGRES_PASSWORD', 'API_LISTEN', 'NAMESERVER_ADDRESS', 'BERTH_SUBNET', 'SANDBOX_MEMORY']

const example = read('deploy/berth.env.example')
const filled: Values = {
  ...readEnvFile(example),
  SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
  POSTGRES_PASSWORD: 'secret',
}

describe('the example of settings', () => {
  test('names only what is read', () => {
    expect(unknownOf(Object.keys(readEnvFile(example, { commented: true })), ofCompose)).toEqual([])
  })

  test('is what compose and the program want, once it is filled in', () => {
    expect(() => readCompose(readEnvFile(example))).toThrow(/SECRETS_KEY|POSTGRES_PASSWORD/)
    expect(() => readCompose(filled)).not.toThrow()
  })
})

describe('compose.yaml', () => {
  const { services, volumes, networks } = readCompose(filled)

  test('has a service for each role, the database and the migrations', () => {
    expect(Object.keys(services).sort()).toEqual([...roles, 'migrate', 'postgres'].sort())
    for (const role of roles) expect(services[role]!.command).toEqual(['serve', '--roles', role])
    expect(services.migrate!.command).toEqual(['migrate'])
  })

  test('passes every setting on, names none that is not read, and is a configuration of production', () => {
    expect(unknownOf(variablesOf(composeText()), ofCompose)).toEqual([])
    for (const role of ['migrate', ...roles]) {
      const service = services[role]!
      expect(unknownOf(Object.keys(service.environment!))).toEqual([])
      const environment = environmentOf(service, { ...filled, LOG_LEVEL: 'debug' })
      expect(loadConfig(environment)).toMatchObject({ production: true, logLevel: 'debug', region: 'local-1' })
    }
    expect(loadConfig(environmentOf(services.worker!, filled))).toMatchObject({
      databaseUrl: 'postgres://berth:secret@postgres:5432/berth',
      nameserverListen: ['172.30.53.53:53'],
      acme: { directoryUrl: filled.ACME_DIRECTORY_URL },
      gitUrlTemplate: filled.GIT_URL_TEMPLATE,
    })
  })

  test('publishes the API, the edge and DNS where their processes listen, and nothing else', () => {
    const published = Object.entries(services).flatMap(([name, { ports = [] }]) =>
      ports.map((port) => `${name} ${port}`),
    )
    expect(published).toEqual([
      ...['api 3000:3000', 'edge 80:80', 'edge 443:443'],
      ...['nameserver 53:53/udp', 'nameserver 53:53/tcp'],
    ])
    const config = (role: string) => loadConfig(environmentOf(services[role]!, filled))
    expect(config('api')).toMatchObject({ host: '0.0.0.0', port: 3000 })
    expect(config('edge')).toMatchObject({ host: '0.0.0.0', edge: { httpPort: 80, httpsPort: 443 } })
    expect(config('nameserver').nameserverListen).toEqual(['0.0.0.0:53'])
  })

  test('gives worker and runner what sandboxes need, no other role anything, and nobody a capability', () => {
    for (const role of ['migrate', ...roles]) {
      const service = services[role]!
      expect(service).toMatchObject({ cap_drop: ['ALL'], read_only: true, env_file: '.env' })
      for (const key of ['privileged', 'cap_add', 'user'] as const) expect(service[key]).toBeUndefined()
      const [first, ...more] = service.security_opt!
      expect(first).toBe('no-new-privileges:true')
      const sandbox = ['seccomp=deploy/seccomp.json', 'apparmor=unconfined', 'systempaths=unconfined']
      expect(more).toEqual(sandboxed.includes(role) ? sandbox : [])
      expect(service.devices ?? []).toEqual(sandboxed.includes(role) ? ['/dev/net/tun'] : [])
    }
  })

  test('asks every role for its health, and starts it after the migrations', () => {
    for (const role of roles) {
      const [, program, script] = services[role]!.healthcheck!.test!
      expect(program).toBe('node')
      expect(existsSync(join(root, script!.replace('dist/', '').replace('.js', '.ts')))).toBe(true)
      expect(services[role]!.depends_on).toEqual({ migrate: { condition: 'service_completed_successfully' } })
    }
  })

  test('declares the volumes and networks it uses', () => {
    for (const service of Object.values(services)) {
      const named = (service.volumes ?? []).map((one) => one.split(':')[0]!).filter((name) => !name.startsWith('.'))
      expect(Object.keys(volumes)).toEqual(expect.arrayContaining(named))
      const used = Array.isArray(service.networks) ? service.networks : Object.keys(service.networks ?? {})
      expect(Object.keys(networks)).toEqual(expect.arrayContaining(used))
    }
  })
})

describe('the image', () => {
  test('has koffi, runs as nobody of importance, and builds from what is sent to it', () => {
    const dockerfile = read('Dockerfile')
    expect(dockerfile).not.toContain('--omit=optional')
    expect(dockerfile).toMatch(/^USER node$/m)
    const ignored = read('.dockerignore').split('\n')
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths]) => paths!.split(' '))
    expect(copied).toContain('src')
    for (const path of copied) {
      expect(existsSync(join(root, path))).toBe(true)
      expect(ignored).not.toContain(path)
    }
    // Secrets of a checkout stay out of it.
    expect(ignored).toEqual(expect.arrayContaining(['.env', '.berth', 'tls']))
  })

  test('has a system call filter that refuses what sandboxes refuse, but for making them', () => {
    const { defaultAction, syscalls } = JSON.parse(read('deploy/seccomp.json')) as {
      defaultAction: string
      syscalls: { names: string[]; action: string; errnoRet: number }[]
    }
    expect(defaultAction).toBe('SCMP_ACT_ALLOW')
    const making = ['unshare', 'setns', 'mount', 'umount2', 'pivot_root', 'sethostname', 'clone3']
    const refused = syscalls.flatMap(({ names, action }) => (action === 'SCMP_ACT_ERRNO' ? names : []))
    const wanted = [...Object.keys(REFUSED), ...Object.keys(ABSENT)].filter((name) => !making.includes(name))
    expect(new Set(refused)).toEqual(new Set([...wanted, 'socket']))
  })
})
