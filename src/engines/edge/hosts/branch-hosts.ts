// The host of a branch shows the newest READY deployment of the branch.
import type { Host } from './targets.ts'

export class BranchHost {
  readonly host: Host
  readonly #deployments = new Set<string>()
  /** Deployment ids sort by time of creation. */
  #newest = ''

  constructor(host: Host) {
    this.host = host
  }

  get isEmpty(): boolean {
    return this.#deployments.size === 0
  }

  add(deploymentId: string): void {
    this.#deployments.add(deploymentId)
    if (deploymentId > this.#newest) this.#show(deploymentId)
  }

  drop(deploymentId: string): void {
    this.#deployments.delete(deploymentId)
    if (deploymentId !== this.#newest) return
    let next = ''
    for (const id of this.#deployments) if (id > next) next = id
    this.#show(next)
  }

  bar(barred: boolean): void {
    this.host.barred = barred
    this.#show(this.#newest)
  }

  #show(deploymentId: string): void {
    const { projectId, barred } = this.host
    this.#newest = deploymentId
    this.host.target = barred || deploymentId === '' ? null : { deploymentId, projectId }
  }
}
