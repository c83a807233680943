// Generates src/generated/api.ts from openapi.yaml, in the format of openapi-typescript 7, which openapi-fetch expects.
// It supports the JSON Schema keywords that openapi.yaml uses and throws on others.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'

type Schema = {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  format?: string
  description?: string
  deprecated?: boolean
}
type Parameter = Schema & { name: string; in: string; required?: boolean; schema: Schema }
type Body = Schema & {
  required?: boolean
  content?: Record<string, { schema: Schema }>
  headers?: Record<string, Header>
}
type Header = Schema & { schema: Schema; required?: boolean }
type Operation = Schema & {
  operationId: string
  summary?: string
  parameters?: Parameter[]
  requestBody?: Body
  responses: Record<string, Body>
}
type Items = Record<string, Record<string, Operation>>
type Components = {
  schemas: Record<string, Schema>
  responses: Record<string, Body>
  parameters: Record<string, Parameter>
  headers: Record<string, Header>
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']
const unsupported = ['allOf', 'not', 'const', 'patternProperties', 'prefixItems', 'if']
const locations = ['query', 'header', 'path', 'cookie']

const root = join(import.meta.dirname, '..')
const document = parse(readFileSync(join(root, 'openapi.yaml'), 'utf8'), { maxAliasCount: -1 }) as {
  components: Components
  paths: Items
  webhooks: Items
}

const quote = (text: string) => JSON.stringify(text)
const name = (key: string) => (/^[A-Za-z_$][\w$]*$|^\d+$/.test(key) ? key : quote(key))
const union = (types: string[]) => [...new Set(types)].join(' | ')

/** `#/components/schemas/Thing` as `components["schemas"]["Thing"]`. */
const reference = (pointer: string) => {
  const [first, ...rest] = pointer.replace('#/', '').split('/')
  return first + rest.map((key) => `[${quote(key)}]`).join('')
}

const resolve = (parameter: Parameter): Parameter =>
  parameter.$ref ? document.components.parameters[parameter.$ref.replace('#/components/parameters/', '')]! : parameter

function comment(node: { summary?: string; format?: string; deprecated?: boolean; description?: string }): string {
  const lines = [node.summary, node.format && `Format: ${node.format}`, node.deprecated && '@deprecated']
  const text = [...lines, node.description && `@description ${node.description}`].filter(Boolean).join('\n')
  return text === '' ? '' : `/**\n * ${text.trim().replaceAll('*/', '*\\/').replaceAll('\n', '\n * ')}\n */\n`
}

const field = (key: string, type: string, optional = false, text = '') =>
  `${text}${key}${optional ? '?' : ''}: ${type};\n`
const record = (fields: string[]) => `{\n${fields.join('')}}`
const fields = <T>(all: Record<string, T> | undefined, of: (value: T, key: string) => string) =>
  Object.entries(all ?? {}).map(([key, value]) => of(value, key))

function typeOf(schema: Schema): string {
  for (const keyword of unsupported) if (keyword in schema) throw new Error(`${keyword} isn't supported.`)
  if (schema.$ref) return reference(schema.$ref)
  if (schema.enum) return union(schema.enum.map((value) => JSON.stringify(value)))
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return union(choices.map(typeOf))
  if (schema.type === undefined) return 'unknown'
  return union([schema.type].flat().map((type) => plainType(schema, type)))
}

const isUnion = ({ $ref, anyOf, oneOf, type, ...rest }: Schema) =>
  $ref === undefined && (rest.enum ?? anyOf ?? oneOf ?? [type].flat()).length > 1

function plainType(schema: Schema, type: string): string {
  if (type === 'object') return objectType(schema)
  if (type === 'array') {
    const items = schema.items ?? {}
    return isUnion(items) ? `(${typeOf(items)})[]` : `${typeOf(items)}[]`
  }
  if (schema.format === 'binary') return 'string | Blob | Uint8Array<ArrayBuffer>'
  const plain = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' }[type]
  if (plain === undefined) throw new Error(`The type ${type} isn't supported.`)
  return plain
}

function objectType({ properties, required, additionalProperties: rest }: Schema): string {
  const known = fields(properties, (schema, key) =>
    field(name(key), typeOf(schema), !required?.includes(key) && !('default' in schema), comment(schema)),
  )
  if (typeof rest === 'object') known.push(field('[key: string]', typeOf(rest)))
  return known.length > 0 ? record(known) : 'Record<string, never>'
}

function parametersType(all: Parameter[]): string {
  const of = (parameter: Parameter) => {
    const { name: key, required, schema, description, deprecated } = resolve(parameter)
    const text = comment({ description, deprecated })
    return field(name(key), parameter.$ref ? reference(parameter.$ref) : typeOf(schema), !required, text)
  }
  const byLocation = locations.map((location) => {
    const own = all.filter((parameter) => resolve(parameter).in === location)
    if (own.length === 0) return field(location, 'never', true)
    return field(location, record(own.map(of)), !own.some((parameter) => resolve(parameter).required))
  })
  return record(byLocation)
}

const contentType = (content: Body['content']) =>
  record(fields(content, ({ schema }, type) => field(name(type), typeOf(schema))))

function responseType(response: Body): string {
  if (response.$ref) return reference(response.$ref)
  const headers = fields(response.headers, (header, key) =>
    header.$ref
      ? field(name(key), reference(header.$ref))
      : field(name(key), typeOf(header.schema), !header.required, comment(header)),
  )
  return record([
    field('headers', record([...headers, field('[name: string]', 'unknown')])),
    response.content ? field('content', contentType(response.content)) : field('content', 'never', true),
  ])
}

function operationType({ parameters, requestBody, responses }: Operation): string {
  const body =
    requestBody &&
    field('requestBody', record([field('content', contentType(requestBody.content))]), !requestBody.required)
  return record([
    field('parameters', parametersType(parameters ?? [])),
    body ?? field('requestBody', 'never', true),
    field(
      'responses',
      record(
        fields(responses, (response, status) =>
          field(name(status), responseType(response), false, comment({ description: response.description })),
        ),
      ),
    ),
  ])
}

const itemType = (item: Record<string, Operation>) =>
  record([
    field('parameters', parametersType([])),
    ...methods.map((method) => {
      const operation = item[method]
      if (operation === undefined) return field(method, 'never', true)
      const { summary, description, deprecated } = operation
      const text = comment({ summary, description, deprecated })
      return field(method, `operations[${quote(operation.operationId)}]`, false, text)
    }),
  ])

const itemsType = (items: Items) => record(fields(items, (item, path) => field(name(path), itemType(item))))

const { schemas, responses, parameters, headers } = document.components
const components = record([
  field('schemas', record(fields(schemas, (schema, key) => field(name(key), typeOf(schema), false, comment(schema))))),
  field(
    'responses',
    record(
      fields(responses, (response, key) =>
        field(name(key), responseType(response), false, comment({ description: response.description })),
      ),
    ),
  ),
  field(
    'parameters',
    record(
      fields(parameters, ({ schema, description }, key) =>
        field(name(key), typeOf(schema), false, comment({ description })),
      ),
    ),
  ),
  field('requestBodies', 'never'),
  field(
    'headers',
    record(
      fields(headers, ({ schema, description }, key) =>
        field(name(key), typeOf(schema), false, comment({ description })),
      ),
    ),
  ),
  field('pathItems', 'never'),
])

const operations = record(
  [document.paths, document.webhooks]
    .flatMap((items) => Object.values(items))
    .flatMap((item) => methods.flatMap((method) => item[method] ?? []))
    .map((operation) => field(name(operation.operationId), operationType(operation))),
)

const file = join(import.meta.dirname, 'src/generated/api.ts')
mkdirSync(dirname(file), { recursive: true })
writeFileSync(
  file,
  `// Written by \`npm run client\` from openapi.yaml.
export interface paths ${itemsType(document.paths)}
export interface webhooks ${itemsType(document.webhooks)}
export interface components ${components}
export type $defs = Record<string, never>;
export interface operations ${operations}
`,
)
