// A Git host: `git http-backend` over real HTTP, by owner/repository.
import { execFileSync, spawn } from 'node:child_process'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createGunzip } from 'node:zlib'

export type GitHost = {
  template: string
  hits: string[]
  /** Called first; returning true means it has responded. */
  handlers: ((request: IncomingMessage, response: ServerResponse) => boolean)[]
  close(): void
}

export async function startGitHost(root: string): Promise<GitHost> {
  const program = `${execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim()}/git-http-backend`
  const hits: string[] = []
  const handlers: GitHost['handlers'] = []
  const server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://host')
    hits.push(url.pathname)
    if (handlers.some((handle) => handle(request, response))) return
    const backend = spawn(program, {
      env: {
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_CONFIG_COUNT: '2',
        GIT_CONFIG_KEY_0: 'safe.directory',
        GIT_CONFIG_VALUE_0: '*',
        GIT_CONFIG_KEY_1: 'http.receivepack',
        GIT_CONFIG_VALUE_1: 'true',
        PATH_INFO: url.pathname,
        QUERY_STRING: url.search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
        REMOTE_USER: 'test',
      },
    })
    const body = request.headers['content-encoding'] === 'gzip' ? request.pipe(createGunzip()) : request
    body.pipe(backend.stdin)
    let head: Buffer | null = Buffer.alloc(0)
    backend.stdout.on('data', (chunk: Buffer) => {
      if (head === null) return void response.write(chunk)
      head = Buffer.concat([head, chunk])
      const end = head.indexOf('\r\n\r\n')
      if (end < 0) return
      for (const line of head.subarray(0, end).toString().split('\r\n')) {
        const [name, value] = line.split(/: (.*)/s) as [string, string]
        if (name === 'Status') response.statusCode = Number.parseInt(value, 10)
        else response.setHeader(name, value)
      }
      response.write(head.subarray(end + 4))
      head = null
    })
    backend.stdout.on('end', () => response.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return { template: `http://127.0.0.1:${port}/{repo}.git`, hits, handlers, close: () => void server.close() }
}
