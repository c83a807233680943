// The options of route plugins, and the settings with which routes describe themselves.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import type { FaultCode } from '../../platform/errors.ts'
import type { Sound } from '../../platform/fields.ts'
import type { Deps } from '../http/deps.ts'
import type { Once } from '../http/idempotency.ts'
import type { Turns } from '../http/shares/turns.ts'

/** A body without its malformed fields, as passed to `meaning`. */
export type SoundBody<T extends TSchema> = Sound<Static<T>>

/**
 * `inUploadTurn`: for work that locks the uploads of an account while it writes a long list of files. Other requests
 * would wait for the lock in the database, which aborts them after a second.
 */
export type RoutePlugin = FastifyPluginAsyncTypebox<{ deps: Deps; once: Once; inUploadTurn: Turns }>

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Codes that only this operation responds with; http/openapi adds the common ones. */
    faults?: FaultCode[]
    /** The resource can't be read alone, so it has no ETag for If-Match. */
    withoutEtag?: boolean
    /** A PUT that responds with the stored resource and its ETag. */
    showsVersion?: boolean
    /**
     * The response waits until the change is live, and then has this header: for zones only with `?wait=served`, for
     * production always.
     */
    showsServed?: 'Zone-Served' | 'Production-Served'
    /** The response has the header Upload-Offset. */
    showsOffset?: boolean
    /** The operation can also respond with a stream; the schema describes its messages. */
    stream?: TSchema
  }
}

export const NoContent = Type.Null({ description: 'Done; there is nothing to say' })
