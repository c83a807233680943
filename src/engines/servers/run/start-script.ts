// A start script of package.json run as npm runs it, without npm: that is 15 MB less for each server, and an earlier start.
import { constants } from 'node:fs'
import { lstat, open, realpath } from 'node:fs/promises'
import { join } from 'node:path'

export type Start = { command: string; environment: Record<string, string> }

const maxBytes = 1 << 20
const byNpm = /^npm (?:start|run ([\w:.][\w:.-]*))$/
// Linux takes no more than 128 KiB in one variable.
const maxTextLength = 8 << 10
// The script is in the environment: nothing of it has to be quoted. The log shows it, as npm does.
const runScript = `printf '> %s\\n' "$npm_lifecycle_script"; exec /bin/sh -c "$npm_lifecycle_script"`

/**
 * What does the same as `command` in the directory `root` of a published tree, which nobody changes any more. It is the
 * command itself where npm would do more than to run one script: other scripts before or after it, settings, variables.
 */
export async function startOf(
  command: string,
  { directory, root }: { directory: string; root: string },
  environment: Record<string, string>,
): Promise<Start> {
  const asItIs = { command, environment }
  const [matched, event = 'start'] = byNpm.exec(command) ?? []
  if (matched === undefined || Object.keys(environment).some((name) => /^npm_config_/i.test(name))) return asItIs
  // Links of the tree may lead anywhere: they are meant for the sandbox.
  const tree = await realpath(directory).catch(() => null)
  if (tree === null || (await realpath(join(tree, root)).catch(() => null)) !== join(tree, root)) return asItIs
  const places = ancestorsOf(root)
  if (await hasAny(places.map((place) => join(tree, place, '.npmrc')))) return asItIs
  const { scripts, config, name, version } = await readPackage(join(tree, root, 'package.json'))
  const script = asText(scripts?.[event])
  if (script === '' || /npm_/i.test(script) || config !== undefined) return asItIs
  if (scripts[`pre${event}`] !== undefined || scripts[`post${event}`] !== undefined) return asItIs
  const programs = places.map((_, index) => `\${PWD%${'/*'.repeat(index)}}/node_modules/.bin`)
  return {
    command: `export PATH="${programs.join(':')}:$PATH" INIT_CWD="$PWD" npm_package_json="$PWD/package.json"; ${runScript}`,
    environment: {
      ...environment,
      npm_command: event === 'start' ? 'start' : 'run-script',
      npm_lifecycle_event: event,
      npm_lifecycle_script: script,
      npm_package_name: asText(name),
      npm_package_version: asText(version),
    },
  }
}

/** The directory and those above it within the tree, as paths in it; the nearest comes first. */
function ancestorsOf(root: string): string[] {
  const parts = root.split('/').filter((part) => part !== '' && part !== '.')
  return [...parts.map((_, index) => parts.slice(0, parts.length - index).join('/')), '']
}

const hasAny = async (paths: string[]) =>
  (await Promise.allSettled(paths.map((path) => lstat(path)))).some(({ status }) => status === 'fulfilled')

/** Empty for what cannot be a variable. */
const asText = (value: unknown) =>
  typeof value === 'string' && value.length <= maxTextLength && !value.includes('\0') ? value : ''

// biome-ignore lint/suspicious/noExplicitAny: A file of the customer, of which nothing is known.
async function readPackage(path: string): Promise<any> {
  try {
    // Of a link nothing is known, and a pipe would be waited for.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const stat = await file.stat()
      if (!stat.isFile() || stat.size > maxBytes) return {}
      const found = JSON.parse(await file.readFile('utf8'))
      return typeof found?.scripts === 'object' ? found : {}
    } finally {
      await file.close()
    }
  } catch {
    // npm tells what is wrong with it.
    return {}
  }
}
