// Fetches the source of a build: a commit, or uploaded files.
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type GitRemote, RemoteRefused } from '../../../platform/git/git-remote.ts'
import { hostOf } from '../../../platform/git/repositories.ts'
import { readUploaded, type UploadedFile } from '../../../services/deployments/index.ts'
import { markLost } from '../../../services/uploads/index.ts'
import { BuildFailure, HostUnreachable } from '../explain/failure.ts'
import { maxDiskMb, outOfTime } from '../run/commands.ts'
import type { Task } from '../run/task.ts'
import type { Source } from '../tree/source-tree.ts'
import { openSource, refusalFailure } from './source.ts'
import { openStoredSource } from './stored-source.ts'
import { findLost, openUploadedSource, UploadLost } from './uploaded-source.ts'

const sizeEveryMs = 500

export async function fetchSource(task: Task): Promise<Source> {
  const { tools, build, access, log } = task
  log.step('clone')
  // Servers need a checked-out tree, even if prebuilt.
  if (build.upload?.prebuilt && build.framework !== 'node')
    return openStoredSource(tools.artifacts, await uploaded(task), task.signal)
  await mkdir(join(task.directory, 'git'), { recursive: true, mode: 0o755 })
  if (build.upload) return openUploaded(task)
  if (build.repo === '') throw new BuildFailure('repository_unreachable', 'The project has no repository.')
  log.system(`Cloning ${build.repo} at ${build.commit.slice(0, 7)} (${build.ref})`)
  const remote = await tools.repositories.open(build.repo, access).catch((error) => {
    if (!(error instanceof RemoteRefused)) throw error
    if (error.refusal === 'unreachable') throw new HostUnreachable(hostOf(tools.repositories, build.repo))
    throw refusalFailure(build.repo, error.refusal)
  })
  // Closes the access before the build starts.
  return fetchFrom(task, remote).finally(remote.close)
}

async function fetchFrom({ tools, build, directory, deadline, log, signal }: Task, remote: GitRemote): Promise<Source> {
  const { config } = tools
  const full = new AbortController()
  const timeout = AbortSignal.timeout(Math.max(1, deadline - Date.now()))
  const fetching = AbortSignal.any([signal, timeout, full.signal])
  const options = {
    url: remote.url,
    urlTemplate: remote.own ? config.gitUrlTemplate : remote.url,
    remote,
    commit: build.commit,
    ref: build.ref.startsWith('refs/') ? build.ref : undefined,
    untrusted: build.untrusted,
    directory: join(directory, 'git'),
    searchPath: config.searchPath,
    signal: fetching,
  }
  const watch = watchSize(options.directory, maxDiskMb, () => full.abort())
  return openSource(options, log)
    .catch((error) => {
      if (signal.aborted) throw error
      if (full.signal.aborted)
        throw new BuildFailure('build_out_of_disk', `The repository is larger than ${maxDiskMb} MB.`)
      if (timeout.aborted) throw outOfTime(config)
      throw error
    })
    .finally(() => watch.stop())
}

async function uploaded({ tools, build, log }: Task): Promise<UploadedFile[]> {
  const files = await readUploaded(tools.db, build.id)
  if (!files) throw new UploadLost()
  log.system(`Taking ${files.length} uploaded ${files.length === 1 ? 'file' : 'files'}`)
  return files
}

/** Turns the uploaded files into a commit, to build them like any other. */
async function openUploaded(task: Task): Promise<Source> {
  const { tools, directory, signal } = task
  const files = await uploaded(task)
  const options = { directory: join(directory, 'git'), searchPath: tools.config.searchPath, signal }
  return openUploadedSource(tools.artifacts, files, options)
}

/** Records lost files, so that the next upload includes them. */
export async function recordLostFiles({ tools, build, signal }: Task): Promise<void> {
  const files = (await readUploaded(tools.db, build.id)) ?? []
  await markLost(tools.db, await findLost(tools.artifacts, files, signal))
}

/** Limits the total size of packs, submodules and Git LFS files. */
function watchSize(directory: string, maxMb: number, onExceeded: () => void): { stop(): void } {
  const timer = setInterval(() => {
    execFile('du', ['-s', '-k', '--', directory], (_error, stdout) => {
      if (Number.parseInt(stdout, 10) > maxMb * 1024) onExceeded()
    })
  }, sizeEveryMs)
  return { stop: () => clearInterval(timer) }
}
