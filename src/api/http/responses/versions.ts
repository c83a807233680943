// Dated API versions: which exist, which one a request uses, and responses in the form of an older one.
import type { Static, TSchema } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Fault } from '../../../platform/errors.ts'
import { Dnssec } from '../../../schemas/dnssec.ts'
import { addVary } from './compression.ts'

type Change = { schema: string; before(answer: unknown): unknown }

/** How a response that is exactly this resource looked before. Lists of it need a change of their own. */
function change<T extends TSchema>(schema: T, before: (answer: Static<T>) => object): Change {
  return { schema: schema.$id!, before: (answer) => before(answer as Static<T>) }
}

const withLowerState = <T extends { state: string }>(item: T) => ({ ...item, state: item.state.toLowerCase() })

/** Newest first. Changes are undone one version at a time, so each one knows only the version before its own. */
const versions: { date: string; changes: Change[] }[] = [
  {
    date: '2026-11-19',
    changes: [change(Dnssec, (zone) => ({ ...withLowerState(zone), keys: zone.keys.map(withLowerState) }))],
  },
  { date: '2026-11-14', changes: [] },
]

export const knownVersions = versions.map(({ date }) => date)
export const apiVersion = knownVersions[0]!

/** The version that a request is answered in. Errors about an unknown version use the current one. */
export function versionOf({ headers }: Pick<FastifyRequest, 'headers'>): string {
  return knownVersions.find((date) => date === headers['api-version']) ?? apiVersion
}

export function refuseUnknownVersion({ headers }: FastifyRequest): void {
  const requested = headers['api-version']
  if (requested === undefined || knownVersions.includes(String(requested))) return
  const known = `${knownVersions.slice(0, -1).join(', ')} and ${knownVersions.at(-1)}`
  throw new Fault('unknown_api_version', `There is no version ${String(requested).slice(0, 40)}. Supported: ${known}.`)
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Changes that versions made to the operation's responses, newest first. */
    changes?: { date: string; before: Change['before'] }[]
  }
}

const changesOf = ({ routeOptions }: FastifyRequest) => routeOptions.config.changes ?? []

function undoneFor(request: FastifyRequest) {
  const version = versionOf(request)
  return changesOf(request).filter(({ date }) => date > version)
}

/**
 * Each form is a representation with its own ETag. The version comes after `+`, because If-Match names the resource in
 * any form.
 */
export function etagInVersion(request: FastifyRequest, etag: string): string {
  return undoneFor(request).length > 0 ? etag.replace(/"$/, `+${versionOf(request)}"`) : etag
}

/** Must be registered before compression. */
export function useVersions(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const answers = Object.values((route.schema?.response ?? {}) as Record<string, { $ref?: string }>)
    const changes = versions.flatMap(({ date, changes }) =>
      changes
        .filter(({ schema }) => answers.some(({ $ref }) => $ref === schema))
        .map(({ before }) => ({ date, before })),
    )
    if (changes.length > 0) route.config = { ...route.config, changes }
  })
  app.addHook('onSend', (request, reply, payload: unknown, done) => {
    if (changesOf(request).length === 0) return done(null, payload)
    addVary(reply, 'Api-Version')
    const etag = reply.getHeader('etag')
    if (etag) reply.header('etag', etagInVersion(request, String(etag)))
    const undone = undoneFor(request)
    if (undone.length === 0 || reply.statusCode >= 300 || typeof payload !== 'string') return done(null, payload)
    // Applied to the text, so that a replayed Idempotency-Key response comes in the version of whoever repeats the
    // request.
    const answer = undone.reduce((answer, { before }) => before(answer), JSON.parse(payload) as unknown)
    done(null, JSON.stringify(answer))
  })
}
