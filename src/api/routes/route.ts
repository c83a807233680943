// The options of every route plugin, and the settings by which routes describe themselves.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import type { FaultCode } from '../../platform/errors.ts'
import type { Sound } from '../../platform/fields.ts'
import type { Deps } from '../http/deps.ts'
import type { Once } from '../http/idempotency.ts'
import type { Turns } from '../http/shares/turns.ts'

/** A body without the fields whose form is wrong, as `meaning` gets it. */
export type SoundBody<T extends TSchema> = Sound<Static<T>>

/**
 * `inUploadTurn`: for what locks the uploads of an account until a long list of files is written. Others would wait for that
 * in the database, which gives them up after a second.
 */
export type RoutePlugin = FastifyPluginAsyncTypebox<{ deps: Deps; once: Once; inUploadTurn: Turns }>

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Codes that only this operation answers with; the common ones are added by http/openapi.ts. */
    faults?: FaultCode[]
    /** The resource cannot be read by itself, so it has no ETag for If-Match. */
    withoutEtag?: boolean
    /** A PUT whose answer is the resource as it is stored, with its ETag. */
    showsVersion?: boolean
    /**
     * The answer waits until the change is served, and then has this header: of a zone with `?wait=served` alone, of
     * production always.
     */
    showsServed?: 'Zone-Served' | 'Production-Served'
    /** The answer has the header Upload-Offset. */
    showsOffset?: boolean
    /** The operation can also answer a stream; the schema is that of its messages. */
    stream?: TSchema
  }
}

export const NoContent = Type.Null({ description: 'Done; there is nothing to say' })
