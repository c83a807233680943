// The rules Redocly lacks: validation against OpenAPI's own schema, and what only Spectral's `oas` ruleset checked.
import schema from '@seriousme/openapi-schema-validator/schemas/v3.1/schema.json' with { type: 'json' }
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

type Node = Record<string, unknown>
type Location = { child(path: (string | number)[]): Location }
type Context = { report(problem: { message: string; location?: Location }): void; location: Location }
type Path = (string | number)[]
type Report = (message: string, path?: Path) => void

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null
const children = (value: unknown): [string, unknown][] => (isNode(value) ? Object.entries(value) : [])
const at = (value: unknown, ...keys: string[]): unknown =>
  keys.reduce((node, key) => (isNode(node) ? node[key] : undefined), value)

// These hold values, not parts of the document.
const data = ['example', 'examples', 'default', 'enum', 'const']

function* nodes(value: unknown, path: Path = []): Generator<{ node: Node; path: Path }> {
  if (!isNode(value)) return
  yield { node: value, path }
  const named = path.at(-1) === 'properties'
  for (const [key, child] of Object.entries(value))
    if (named || !data.includes(key)) yield* nodes(child, [...path, key])
}

function* operations(items: unknown, path: Path): Generator<{ operation: Node; path: Path }> {
  for (const [name, item] of children(items))
    for (const [method, operation] of children(item))
      if (isNode(operation) && 'responses' in operation) yield { operation, path: [...path, name, method] }
}

function openAjv() {
  const ajv = new Ajv2020({ strict: false })
  formats.default(ajv)
  ajv.addFormat('media-range', true)
  return ajv
}

// OpenAPI's schema accepts any object as a Schema Object, so we add that it must be a JSON Schema.
const schemaObject = { $ref: 'https://json-schema.org/draft/2020-12/schema' }
const isDocument = openAjv().compile({ ...schema, $defs: { ...schema.$defs, schema: schemaObject } })

const pointer = (path: Path) =>
  path.map((key) => `/${encodeURIComponent(String(key).replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('')

/** Runs once, on the document as written: references aren't resolved. */
const rule = (check: (root: Node, report: Report) => void) => () => ({
  Root: (root: Node, { report, location }: Context) =>
    check(root, (message, path = []) => report({ message, location: location.child(path) })),
})

const rules = {
  'valid-document': rule((root, report) => {
    if (!isDocument(root)) report(openAjv().errorsText(isDocument.errors, { dataVar: '' }))
  }),

  // ajv ignores `format: regex` when it validates a schema.
  'valid-patterns': rule((root, report) => {
    for (const { node, path } of nodes(root)) {
      if (typeof node.pattern !== 'string') continue
      try {
        new RegExp(node.pattern, 'u')
      } catch (error) {
        report((error as Error).message, [...path, 'pattern'])
      }
    }
  }),

  'valid-defaults': rule((root, report) => {
    const ajv = openAjv().addSchema(root, 'document', undefined, false)
    for (const { node, path } of nodes(root)) {
      if (!('default' in node) || path.at(-1) === 'properties' || path.includes('variables')) continue
      const valid = ajv.compile({ $ref: `document#${pointer(path)}` })
      if (!valid(node.default)) report(ajv.errorsText(valid.errors, { dataVar: 'default' }), [...path, 'default'])
    }
  }),

  'array-items': rule((root, report) => {
    for (const { node, path } of nodes(root))
      if ([node.type].flat().includes('array') && !('items' in node)) report('An array must have `items`.', path)
  }),

  'no-code-in-text': rule((root, report) => {
    for (const { node, path } of nodes(root))
      for (const key of ['title', 'description'])
        if (/eval\(|<script/.test(String(node[key]))) report('Text must not contain code.', [...path, key])
  }),

  'info-description': rule((root, report) => {
    if (!at(root, 'info', 'description')) report('The API must have a description.', ['info'])
  }),

  'operation-tags': rule((root, report) => {
    for (const { operation, path } of operations(root.paths, ['paths']))
      if (children(operation.tags).length === 0) report('An operation must have a tag.', path)
  }),

  'path-parameters-unique': rule((root, report) => {
    for (const [path] of children(root.paths)) {
      const names = path.match(/\{[^}]*\}/g) ?? []
      if (new Set(names).size < names.length) report('A path must not repeat a parameter.', ['paths', path])
    }
  }),

  'example-value': rule((root, report) => {
    for (const { node, path } of nodes(root)) {
      // In a schema `examples` is a list of values; elsewhere it holds named Example objects.
      if (Array.isArray(node.examples) || path.at(-1) === 'properties') continue
      for (const [name, example] of children(node.examples))
        if (isNode(example) && !('value' in example || 'externalValue' in example || '$ref' in example))
          report('An example must have a value.', [...path, 'examples', name])
    }
  }),

  'no-nested-callbacks': rule((root, report) => {
    for (const { operation, path } of operations(root.paths, ['paths']))
      for (const [name, callback] of children(operation.callbacks))
        for (const inner of operations(callback, [...path, 'callbacks', name]))
          if ('callbacks' in inner.operation) report('A callback must not have callbacks.', inner.path)
  }),

  'plain-webhooks': rule((root, report) => {
    for (const { operation, path } of operations(root.webhooks, ['webhooks']))
      for (const key of ['servers', 'callbacks'])
        if (key in operation) report(`A webhook must not have ${key}.`, [...path, key])
  }),

  'no-unused-links': rule((root, report) => {
    const text = JSON.stringify(root)
    for (const section of ['links', 'callbacks', 'pathItems'])
      for (const [name] of children(at(root, 'components', section)))
        if (!text.includes(`"#/components/${section}/${name}"`))
          report('Nothing refers to this component.', ['components', section, name])
  }),
}

export default () => ({ id: 'berth', rules: { oas3: rules } })
