// The in-memory table that maps host names to deployments. It changes only between two requests.
import type { EdgeHostRow } from '../../../services/deployments/index.ts'
import { BranchHost } from './branch-hosts.ts'
import type { Takeovers } from './takeovers.ts'
import { createEntry, type Gate, type Host, type HostEntry, type Redirect, type Serving } from './targets.ts'

type Domain = { name: string; redirect: Redirect | undefined }
type Project = {
  label: string
  server: boolean
  instances: number
  production: Host
  domains: Domain[]
  deployments: Set<string>
  /** By branch label. */
  branches: Map<string, BranchHost>
  gate: Gate | null
  serving: Serving
  /** Deployments that serve or have served production. */
  served: Set<string>
}

export class HostTable {
  readonly #suffix: string
  readonly #takeovers: Takeovers
  readonly #labels = new Map<string, HostEntry>()
  readonly #domains = new Map<string, HostEntry>()
  readonly #projects = new Map<string, Project>()
  /** Needed to remove a deleted deployment from its own host and from its branch. */
  readonly #deployments = new Map<string, { host: string; branch: string | null }>()

  constructor(edgeDomain: string, takeovers: Takeovers) {
    this.#suffix = `.${edgeDomain.toLowerCase()}`
    this.#takeovers = takeovers
  }

  get size(): number {
    return this.#labels.size + this.#domains.size
  }

  /** `name` is in lower case, without port and trailing dot. */
  find(name: string): HostEntry | undefined {
    const exact = this.#labels.get(name) ?? this.#domains.get(name)
    if (exact) return exact
    // A wildcard covers one label, as in certificates.
    const wildcard = this.#domains.get(`*${name.slice(name.indexOf('.'))}`)
    if (wildcard) return wildcard
    // Our nameservers point `www` of a delegated zone here too, and a verified domain includes all names below it.
    return name.startsWith('www.') ? this.#domains.get(name.slice(4)) : undefined
  }

  projectOfDomain(name: string): string | undefined {
    return this.#domains.get(name)?.host.projectId
  }

  /** The table as database rows; applying them to an empty table restores it. */
  *rows(): Generator<EdgeHostRow> {
    const none = {
      deploymentId: null,
      server: false,
      hsts: false,
      barred: false,
      redirectTo: null,
      redirectStatus: null,
      ...{ protection: 'none', passwordHash: null, previewVersion: 0, skew: false, served: false },
      ...{ spaFallback: null, cleanUrls: null, instances: 0, switching: false, branch: null },
    }
    for (const [projectId, project] of this.#projects) {
      const { label, server, instances, production, domains, deployments, gate, serving, served } = project
      const { target, hsts, barred } = production
      const deploymentId = target?.deploymentId ?? null
      const skew = production.pins !== null
      const own = { name: label, projectId, deploymentId, server, instances, hsts, barred, skew }
      const protection = gate && {
        protection: gate.kind,
        passwordHash: gate.passwordHash,
        previewVersion: gate.version,
      }
      yield { ...none, ...protection, ...own, ...serving, kind: 'project' }
      for (const { name, redirect } of domains) {
        if (this.projectOfDomain(name) !== projectId) continue
        const sent = redirect && { redirectTo: redirect.host, redirectStatus: redirect.status }
        yield { ...none, ...sent, kind: 'domain', name, projectId }
      }
      for (const deploymentId of deployments) {
        const { host, branch } = this.#deployments.get(deploymentId)!
        const name = host.slice(0, -this.#suffix.length)
        yield { ...none, kind: 'deployment', name, projectId, deploymentId, served: served.has(deploymentId), branch }
      }
    }
  }

  /** Applies database rows. A project or deployment in `subjects` without a row was deleted. */
  apply(rows: EdgeHostRow[], subjects: readonly string[] = []): void {
    const present = new Set<string>()
    const domains = Map.groupBy(
      rows.filter(({ kind }) => kind === 'domain'),
      ({ projectId }) => projectId,
    )
    for (const row of rows) {
      if (row.kind === 'project') present.add(row.projectId)
      else if (row.kind === 'deployment') present.add(row.deploymentId!)
    }
    for (const subject of subjects) {
      if (present.has(subject)) continue
      if (this.#projects.has(subject)) this.#dropProject(subject)
      else if (this.#deployments.has(subject)) this.#dropDeployment(subject)
      // Created and deleted between two reads. Its server may still be running from the check at the end of its build.
      else this.#takeovers.retire(subject)
    }
    for (const row of rows) if (row.kind === 'project') this.#putProject(row, domains.get(row.projectId) ?? [])
    for (const row of rows) if (row.kind === 'deployment') this.#putDeployment(row)
  }

  #putProject(row: EdgeHostRow, domains: EdgeHostRow[]): void {
    const { projectId, name, deploymentId, server, hsts, barred } = row
    // Snapshots written by older versions lack these.
    const { instances = 1, switching = false } = row
    let project = this.#projects.get(projectId)
    if (!project) {
      const serving = { spaFallback: null, cleanUrls: null }
      const production = { projectId, target: null, hsts, barred, gate: null, serving, pins: null }
      const none = { domains: [], deployments: new Set<string>(), gate: null, served: new Set<string>() }
      project = { ...none, branches: new Map(), label: name, server, instances, production, serving }
      this.#projects.set(projectId, project)
      this.#setLabel(name + this.#suffix, production, 'production')
    }
    const { production, serving } = project
    project.server = server
    project.instances = instances
    // Snapshots written by older versions lack both.
    serving.spaFallback = row.spaFallback ?? null
    serving.cleanUrls = row.cleanUrls ?? null
    production.hsts = hsts
    if (deploymentId !== null) project.served.add(deploymentId)
    production.pins = row.skew ? project.served : null
    project.gate = gateOf(row)
    for (const id of project.deployments) this.#hostOf(id).gate = project.gate
    for (const { host } of project.branches.values()) host.gate = project.gate
    if (production.barred !== barred) {
      production.barred = barred
      for (const id of project.deployments) this.#bar(id, barred)
      for (const branch of project.branches.values()) branch.bar(barred)
    }
    const move = { instances: server ? instances : 0, switching }
    this.#takeovers.move(production, deploymentId === null ? null : { deploymentId, projectId }, move)
    this.#dropDomains(project)
    project.domains = domains.map(({ name, redirectTo, redirectStatus }) => ({
      name,
      redirect: redirectTo ? { host: redirectTo, status: redirectStatus! } : undefined,
    }))
    for (const { name, redirect } of project.domains) {
      const host = redirect ? { ...production, target: null, pins: null, redirect } : production
      this.#domains.set(name, createEntry(name, host, 'production'))
    }
  }

  // Snapshots written by older versions have no branches.
  #putDeployment({ projectId, name, deploymentId, served, branch = null }: EdgeHostRow): void {
    const project = this.#projects.get(projectId)
    if (project && served) project.served.add(deploymentId!)
    if (!project || this.#deployments.has(deploymentId!)) return
    const host = name + this.#suffix
    this.#deployments.set(deploymentId!, { host, branch })
    this.#setLabel(host, this.#newPreview(project), 'deployment')
    project.deployments.add(deploymentId!)
    this.#bar(deploymentId!, project.production.barred)
    if (branch !== null) this.#branchOf(project, branch).add(deploymentId!)
  }

  #newPreview({ gate, serving, production: { projectId, barred } }: Project): Host {
    return { projectId, target: null, hsts: false, barred, gate, serving, pins: null }
  }

  #branchOf(project: Project, label: string): BranchHost {
    const existing = project.branches.get(label)
    if (existing) return existing
    const branch = new BranchHost(this.#newPreview(project))
    project.branches.set(label, branch)
    this.#setLabel(label + this.#suffix, branch.host, 'deployment')
    return branch
  }

  #setLabel(name: string, host: Host, kind: HostEntry['kind']): void {
    this.#labels.set(name, createEntry(name, host, kind))
  }

  #hostOf(deploymentId: string): Host {
    return this.#labels.get(this.#deployments.get(deploymentId)!.host)!.host
  }

  /** The deployment's own host; undefined if it is not READY or deleted. */
  deploymentEntry(deploymentId: string): HostEntry | undefined {
    return this.#labels.get(this.#deployments.get(deploymentId)?.host ?? '')
  }

  /** Bars or unbars a deployment's own host. */
  #bar(deploymentId: string, barred: boolean): void {
    const host = this.#hostOf(deploymentId)
    host.barred = barred
    host.target = barred ? null : { deploymentId, projectId: host.projectId }
    if (barred) this.#takeovers.halt(deploymentId)
  }

  #dropProject(projectId: string): void {
    const project = this.#projects.get(projectId)!
    // First, so that no branch switches to another deployment while they are removed.
    for (const label of project.branches.keys()) this.#labels.delete(label + this.#suffix)
    project.branches.clear()
    for (const deploymentId of project.deployments) this.#dropDeployment(deploymentId)
    this.#dropDomains(project)
    this.#labels.delete(project.label + this.#suffix)
    this.#projects.delete(projectId)
    this.#takeovers.dropProject(projectId)
  }

  #dropDeployment(deploymentId: string): void {
    const { host, branch } = this.#deployments.get(deploymentId)!
    const project = this.#projects.get(this.#labels.get(host)!.host.projectId)
    this.#labels.delete(host)
    this.#deployments.delete(deploymentId)
    project?.deployments.delete(deploymentId)
    project?.served.delete(deploymentId)
    if (project && branch !== null) this.#dropFromBranch(project, branch, deploymentId)
    this.#takeovers.retire(deploymentId)
  }

  #dropFromBranch({ branches }: Project, label: string, deploymentId: string): void {
    const branch = branches.get(label)
    branch?.drop(deploymentId)
    if (!branch?.isEmpty) return
    branches.delete(label)
    this.#labels.delete(label + this.#suffix)
  }

  #dropDomains(project: Project): void {
    for (const { name } of project.domains) {
      // The domain may have moved to another project since.
      if (this.projectOfDomain(name) === project.production.projectId) this.#domains.delete(name)
    }
  }
}

/** Snapshots written by older versions have no protection. */
function gateOf({ protection, passwordHash = null, previewVersion: version = 0 }: EdgeHostRow): Gate | null {
  return protection === 'password' || protection === 'link' ? { kind: protection, passwordHash, version } : null
}
