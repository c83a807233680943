// What every route plugin is given, and the small vocabulary in which routes describe themselves.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { Deps } from '../deps.ts'
import type { FaultCode } from '../errors.ts'
import type { Once } from '../http/idempotency.ts'

export type RoutePlugin = FastifyPluginAsyncTypebox<{ deps: Deps; once: Once }>

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Codes that only this operation answers with; the common ones are added by http/openapi.ts. */
    faults?: FaultCode[]
    /** The resource cannot be read by itself, so there is no ETag to guard its change with. */
    withoutEtag?: boolean
  }
}

export const NoContent = Type.Null({ description: 'Done; there is nothing to say' })
