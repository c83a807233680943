// The manifests of Kubernetes: a deployment for each role, with its rights, probes and ports.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { root } from '../image/compose.ts'
import { read, roles, sandboxed, unknownOf } from './known.ts'

type Container = {
  image: string
  args: string[]
  env: { name: string }[]
  ports?: { name: string; containerPort: number }[]
  securityContext: object
  volumeMounts: { name: string }[]
} & Record<'startupProbe' | 'livenessProbe' | 'readinessProbe', { httpGet: { path: string; port: string } } | undefined>
type Resource = {
  apiVersion: string
  kind: string
  metadata: { name: string }
  spec: {
    type?: string
    replicas?: number
    selector: { matchLabels: object }
    ports: { targetPort: string }[]
    template: {
      metadata: { labels: Record<string, string> }
      spec: { containers: Container[]; volumes: { name: string }[]; hostUsers?: boolean; securityContext: object }
    }
  }
}

const modules: Record<string, string> = {
  v1: 'core/v1.d.ts',
  'apps/v1': 'apps/v1.d.ts',
  'batch/v1': 'batch/v1.d.ts',
  'policy/v1': 'policy/v1.d.ts',
}

describe('the manifests of Kubernetes', () => {
  const files = readdirSync(join(root, 'deploy/kubernetes')).filter((name) => name.endsWith('.yaml'))
  const kustomization = parse(read('deploy/kubernetes/kustomization.yaml')) as { resources: string[] }
  const resources = kustomization.resources.flatMap((name) =>
    parseAllDocuments(read(`deploy/kubernetes/${name}`)).map((document) => document.toJS() as Resource),
  )
  const of = (kind: string) => resources.filter((one) => one.kind === kind)

  test('are all in the kustomization', () => {
    expect(files.sort()).toEqual([...kustomization.resources, 'kustomization.yaml'].sort())
  })

  test('have the fields of the Kubernetes API, and no others', () => {
    // Its published types: the compiler finds a field that does not exist, is missing or has another type.
    const lines = resources.map((resource, index) => {
      const type = `import('kubernetes-types/${modules[resource.apiVersion]}').${resource.kind}`
      return `export const one${index}: ${type} = ${JSON.stringify(resource)}`
    })
    const directory = mkdtempSync(join(root, 'node_modules/.kubernetes-'))
    try {
      const file = join(directory, 'manifests.ts')
      const check = (text: string) => {
        writeFileSync(file, text)
        const options = [
          '--ignoreConfig',
          '--noEmit',
          '--strict',
          '--skipLibCheck',
          '--module',
          'nodenext',
          '--types',
          '',
        ]
        const compiler = join(root, 'node_modules/typescript/bin/tsc')
        return spawnSync(process.execPath, [compiler, ...options, file], { encoding: 'utf8', cwd: directory }).stdout
      }
      expect(check(lines.join('\n'))).toBe('')
      expect(check(lines.join('\n').replace('"hostUsers"', '"hostUser"'))).toMatch(/hostUser\W+does not exist/)
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  test('have a deployment for each role, which names only settings that are read', () => {
    expect(
      of('Deployment')
        .map(({ metadata }) => metadata.name)
        .sort(),
    ).toEqual(roles)
    for (const { kind, metadata, spec } of [...of('Deployment'), ...of('Job')]) {
      const [container, ...others] = spec.template.spec.containers
      expect(others).toEqual([])
      expect(container!.args).toEqual(kind === 'Job' ? ['migrate'] : ['serve', '--roles', metadata.name])
      expect(unknownOf(container!.env.map(({ name }) => name))).toEqual([])
      expect(container!.volumeMounts.map(({ name }) => name)).toEqual(
        spec.template.spec.volumes.map(({ name }) => name),
      )
    }
  })

  test('run every role without rights, and only worker and runner with what sandboxes need', () => {
    for (const { metadata, spec } of [...of('Deployment'), ...of('Job')]) {
      const { containers, securityContext, hostUsers } = spec.template.spec
      const isSandboxed = sandboxed.includes(metadata.name)
      const seccompProfile = isSandboxed
        ? { type: 'Localhost', localhostProfile: 'berth.json' }
        : { type: 'RuntimeDefault' }
      expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, seccompProfile })
      expect(containers[0]!.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
        ...(isSandboxed && { procMount: 'Unmasked' }),
      })
      expect(hostUsers).toBe(isSandboxed ? false : undefined)
    }
  })

  test('ask for health and readiness at the port of the metrics', () => {
    for (const { spec } of of('Deployment')) {
      const container = spec.template.spec.containers[0]!
      expect(container.ports).toContainEqual({ name: 'metrics', containerPort: 9090 })
      const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe]
      const asked = ['/healthz', '/healthz', '/readyz'].map((path) => ({ path, port: 'metrics' }))
      expect(probes.map((probe) => probe?.httpGet)).toEqual(asked)
    }
  })

  test('select the pods they mean, at ports that these have', () => {
    const pods = of('Deployment').map(({ spec }) => spec.template)
    const selected = (labels: object) =>
      pods.filter(({ metadata }) => Object.entries(labels).every(([key, value]) => metadata.labels[key] === value))
    for (const { kind, metadata, spec } of resources.filter((one) => one.spec?.selector)) {
      const found = selected(kind === 'Service' ? spec.selector : spec.selector.matchLabels)
      expect(found.map((pod) => pod.spec.containers[0]!.args[2])).toEqual([metadata.name])
      if (kind !== 'Service') continue
      const ports = found[0]!.spec.containers[0]!.ports!.map(({ name }) => name)
      expect(ports).toEqual(expect.arrayContaining(spec.ports.map(({ targetPort }) => targetPort)))
    }
    expect(of('Service').map(({ metadata }) => metadata.name)).toEqual(['api', 'edge', 'nameserver'])
  })
})
