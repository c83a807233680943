// The types of the API from openapi.yaml: parameters and responses by path.
import type { Client, ClientPathsWithMethod, MaybeOptionalInit } from 'openapi-fetch'
import type { components, paths } from './generated/api.ts'

/** Every named schema of openapi.yaml: `Schemas['Deployment']`. */
export type Schemas = components['schemas']
export type Deployment = Schemas['Deployment']
export type Domain = Schemas['Domain']
export type Event = Schemas['Event']
export type LogLine = Schemas['LogLine']
export type Problem = Schemas['Problem']
export type Project = Schemas['Project']

/** The paths that take a token; push hooks are for Git hosts. */
export type ApiPaths = Omit<paths, `/hooks/${string}`>
export type ApiClient = Client<ApiPaths>

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
export type PathOf<M extends Method> = ClientPathsWithMethod<ApiClient, M>
export type Init<P extends PathOf<M>, M extends Method> = MaybeOptionalInit<ApiPaths[P], M>
/** The second argument, optional if none of its fields is required. */
export type InitOf<P extends PathOf<M>, M extends Method> = undefined extends Init<P, M> ? [Init<P, M>?] : [Init<P, M>]

type SuccessOf<R> = R[keyof R & (200 | 201 | 202)]
type BodyOf<R> = R extends { content: { 'application/json': infer Json } }
  ? Json
  : R extends { content: infer C extends object }
    ? C[keyof C]
    : undefined
/** The response body: JSON, the text of a zone, or nothing. */
export type AnswerOf<P extends PathOf<M>, M extends Method> = ApiPaths[P][M] extends { responses: infer R }
  ? [SuccessOf<R>] extends [never]
    ? undefined
    : BodyOf<SuccessOf<R>>
  : never

type QueryOf<P extends PathOf<'get'>> = ApiPaths[P]['get'] extends { parameters: { query?: infer Q } }
  ? NonNullable<Q>
  : never
type TakesCursor<P extends PathOf<'get'>> = [QueryOf<P>] extends [never]
  ? false
  : QueryOf<P> extends { cursor?: string }
    ? true
    : false
/** Paths that return a page of a list. */
export type ListPath = {
  [P in PathOf<'get'>]: AnswerOf<P, 'get'> extends { nextCursor: string | null }
    ? TakesCursor<P> extends true
      ? P
      : never
    : never
}[PathOf<'get'>]
export type PageOf<P extends ListPath> = AnswerOf<P, 'get'>
export type ItemOf<P extends ListPath> = {
  [K in keyof PageOf<P>]: PageOf<P>[K] extends readonly (infer T)[] ? T : never
}[keyof PageOf<P>]
