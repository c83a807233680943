// The hosts of this installation that sandboxed commands may reach though their addresses are private.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Logger } from 'pino'

const run = promisify(execFile)

/**
 * Address of the package registry. Asked of npm, because a company's mirror is configured there and nowhere else; it
 * takes half a second, which a start need not wait for.
 */
export function askPackageRegistry(log: Logger): Promise<string> {
  const registry = run('npm', ['config', 'get', 'registry']).then(({ stdout }) => stdout.trim())
  registry.catch((err) => log.error({ err }, 'npm does not say which registry it uses'))
  return registry
}

/** `host:port` of the package registry and of the repository host: a mirror within the company is as good as a public one. */
export function privateHosts(packageRegistry: string, gitUrlTemplate: string): string[] {
  return [packageRegistry, gitUrlTemplate.replace('{repo}', 'a/b')].map((address) => {
    const { hostname, port, protocol } = new URL(address)
    return `${hostname}:${port || (protocol === 'http:' ? 80 : 443)}`
  })
}
