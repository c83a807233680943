// Every operation of the running app, read from its own OpenAPI document, so that no list of them can go stale.
import type { App } from '../../src/api/app.ts'

// biome-ignore lint/suspicious/noExplicitAny: a JSON schema is looked at, whatever its shape.
export type Schema = any

export type Operation = {
  /** `GET /projects/{project}`, as tests are named. */
  name: string
  id: string
  method: string
  /** Path below /api with its parameters in braces. */
  template: string
  /** Scope that the operation says it needs; null where any valid token will do. */
  scope: string | null
  query: { name: string; required: boolean; schema: Schema }[]
  /** `types` are all media types it takes, `type` the first of them. */
  body: { type: string; types: string[]; schema: Schema; examples: unknown[] } | null
  /** Answers 201. */
  created: boolean
  /** Answers 304 to who has what is read. */
  single: boolean
  /** Headers that the operation says it heeds, in lower case. */
  headers: string[]
  /** Says that it concerns the whole account, so a token narrowed to projects is refused. */
  accountWide: boolean
}

type Described = {
  operationId: string
  parameters?: { in: string; name: string; required?: boolean; schema: Schema }[]
  requestBody?: { content: Record<string, Schema> }
  security: { bearer: string[] }[]
  servers?: object[]
  responses: Record<string, Answer>
}

type Answer = { $ref?: string; description?: string }

export type Document = {
  paths: Record<string, Record<string, Described>>
  components: { schemas: Record<string, Schema>; responses: Record<string, Answer> }
}

export function documentOf(app: App): Document {
  return (app as unknown as { swagger(): unknown }).swagger() as Document
}

/** Whether one of the codes of 403 says that a token narrowed to projects is refused. */
function isAccountWide(document: Document, { responses }: Described): boolean {
  const answer = responses[403]
  const shared = answer?.$ref && document.components.responses[answer.$ref.split('/').pop()!]
  return (shared || answer)?.description?.includes('token_limited_to_projects') ?? false
}

/** The schema with what it refers to in place. */
function resolved(document: Document, schema: Schema): Schema {
  if (schema === null || typeof schema !== 'object') return schema
  if (Array.isArray(schema)) return schema.map((item) => resolved(document, item))
  if (schema.$ref) return resolved(document, document.components.schemas[schema.$ref.split('/').pop()])
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, resolved(document, value)]))
}

function bodyOf(document: Document, described: Described): Operation['body'] {
  const content = described.requestBody?.content ?? {}
  const [type, media] = Object.entries(content)[0] ?? []
  if (!type) return null
  const schema = resolved(document, media.schema)
  const several = Object.values(media.examples ?? {}).map((one) => (one as { value: unknown }).value)
  const examples = [...several, ...(media.example === undefined ? [] : [media.example]), ...(schema.examples ?? [])]
  return { type, types: Object.keys(content), schema, examples }
}

export function operationsOf(app: App): Operation[] {
  const document = documentOf(app)
  return Object.entries(document.paths).flatMap(([template, methods]) =>
    Object.entries(methods)
      // What is outside /api is guarded by other means, and tested where it is.
      .filter(([, described]) => described.servers === undefined)
      .map(([method, described]) => ({
        name: `${method.toUpperCase()} ${template}`,
        id: described.operationId,
        method: method.toUpperCase(),
        template,
        scope: described.security[0]?.bearer[0] ?? null,
        query: (described.parameters ?? [])
          .filter((parameter) => parameter.in === 'query')
          .map(({ name, required = false, schema }) => ({ name, required, schema: resolved(document, schema) })),
        body: bodyOf(document, described),
        created: '201' in described.responses,
        single: '304' in described.responses,
        headers: (described.parameters ?? []).filter((one) => one.in === 'header').map((one) => one.name.toLowerCase()),
        accountWide: isAccountWide(document, described),
      })),
  )
}

/** The operation, and its HEAD where it is a GET. */
export function methodsOf(operation: Operation): string[] {
  return operation.method === 'GET' ? ['GET', 'HEAD'] : [operation.method]
}

export function takesParameters(operation: Operation): boolean {
  return operation.template.includes('{')
}
