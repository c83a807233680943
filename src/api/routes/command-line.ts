// /cli: the customers' CLI, one file for Node. It gets this server's URL built in.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import { Fault } from '../../platform/errors.ts'
import { root } from '../../platform/installation.ts'
import { type PublicAnswer, publicAnswer, sendPublic } from '../http/responses/public-responses.ts'

const hidden = { schema: { hide: true } } as const
// The placeholder for the URL in the built file: `served` in cli/src/kit/built-in.ts.
const placeholder = 'https://home.berth.invalid'

type Options = { baseUrl: string; file?: string | undefined }

export const commandLineRoutes: FastifyPluginAsync<Options> = async (app, { baseUrl, file }) => {
  // Read on first request: most servers rarely get one.
  let answer: Promise<PublicAnswer> | null = null

  async function read(): Promise<PublicAnswer> {
    const script = await readFile(file ?? join(root, 'dist/cli/berth.mjs'), 'utf8').catch(() => {
      throw new Fault('route_not_found', 'This server was built without the command line.')
    })
    return publicAnswer('text/javascript; charset=utf-8', script.replaceAll(placeholder, new URL(baseUrl).origin))
  }

  app.get('/cli', hidden, async (request, reply) => {
    answer ??= read().catch((error) => {
      answer = null
      throw error
    })
    return sendPublic(request, reply, await answer)
  })
}
