// This installation's hosts that sandboxed commands may reach at private addresses.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Logger } from 'pino'

const run = promisify(execFile)

/**
 * The URL of the package registry, from npm, where a company configures its mirror. It takes half a second, so startup
 * doesn't wait for it.
 */
export function askPackageRegistry(log: Logger): Promise<string> {
  const registry = run('npm', ['config', 'get', 'registry']).then(({ stdout }) => stdout.trim())
  registry.catch((err) => log.error({ err }, 'npm does not say which registry it uses'))
  return registry
}

/** `host:port` of the package registry and the repository host, which may be internal to the company. */
export function privateHosts(packageRegistry: string, gitUrlTemplate: string): string[] {
  return [packageRegistry, gitUrlTemplate.replace('{repo}', 'a/b')].flatMap((address) => {
    const { hostname, port, protocol } = new URL(address)
    // Repositories may be files on this machine.
    return hostname === '' ? [] : `${hostname}:${port || (protocol === 'http:' ? 80 : 443)}`
  })
}
