// Removes a directory with its content, even if an untrusted command created it.
import { execFile } from 'node:child_process'
import { lstat } from 'node:fs/promises'

/**
 * Uses `rm`, which walks by directory descriptors: it follows no link, even if one replaces a directory in the meantime,
 * and has no depth limit. Node's own function walks by paths.
 */
export async function removeTree(path: string): Promise<void> {
  if ((await lstat(path).catch(() => null)) === null) return
  const failed = await run('rm', ['-rf', '--', path])
  if (!failed) return
  // Without root, a directory without permissions for its owner can't be emptied. -R doesn't follow links either.
  await run('chmod', ['-R', 'u+rwx', '--', path])
  const again = await run('rm', ['-rf', '--', path])
  if (again) throw new Error(`${path} could not be removed: ${again}`)
}

function run(program: string, args: string[]): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(program, args, { maxBuffer: 1 << 20 }, (error, _stdout, stderr) =>
      resolve(error ? stderr.slice(0, 500) || error.message : null),
    )
  })
}
