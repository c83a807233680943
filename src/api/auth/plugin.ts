// The type of every plugin below /auth.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Deps } from '../http/deps.ts'
import type { Ways } from './ways.ts'

export type AuthPlugin = FastifyPluginAsyncTypebox<{ deps: Deps; ways: Ways }>
