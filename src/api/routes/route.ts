// The options of every route plugin, and the settings by which routes describe themselves.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type TSchema, Type } from '@sinclair/typebox'
import type { FaultCode } from '../../platform/errors.ts'
import type { Deps } from '../deps.ts'
import type { Once } from '../http/idempotency.ts'

export type RoutePlugin = FastifyPluginAsyncTypebox<{ deps: Deps; once: Once }>

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Codes that only this operation answers with; the common ones are added by http/openapi.ts. */
    faults?: FaultCode[]
    /** The resource cannot be read by itself, so it has no ETag for If-Match. */
    withoutEtag?: boolean
    /** The operation can also answer a stream; the schema is that of its messages. */
    stream?: TSchema
  }
}

export const NoContent = Type.Null({ description: 'Done; there is nothing to say' })
