// The type of every plugin below /auth.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Deps } from '../http/deps.ts'
import type { SignInContext } from './context.ts'

export type AuthPlugin = FastifyPluginAsyncTypebox<{ deps: Deps; context: SignInContext }>
