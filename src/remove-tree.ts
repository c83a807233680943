// Removes a directory with all that is in it, whoever made it.
import { execFile } from 'node:child_process'
import { lstat } from 'node:fs/promises'

/**
 * By `rm`, which goes from directory to directory by descriptors: it follows no link, also where one takes a
 * directory's place while it works, and knows no limit of depth. Node's own goes by paths.
 */
export async function removeTree(path: string): Promise<void> {
  if ((await lstat(path).catch(() => null)) === null) return
  const failed = await run('rm', ['-rf', '--', path])
  if (!failed) return
  // Without root, a directory whose owner closed it to himself holds its content; -R follows no link either.
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
