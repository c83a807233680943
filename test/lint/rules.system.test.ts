// Each rule for openapi.yaml catches what it exists for: every case breaks a valid document in one way.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

type Problem = { ruleId: string; location: { source: { ref: string } }[] }

const things = '/things/{id}'
const responses = { 200: { description: 'Done' }, 400: { description: 'Refused' } }
const text = (name: string) => ({ operationId: name, summary: name, description: `${name}.`, tags: ['things'] })
const callback = (inner: object) => ({ a: { 'https://a.test': { post: { ...text('call'), responses, ...inner } } } })
const json = (content: object) => ({
  'application/json': { schema: { $ref: '#/components/schemas/Thing' }, ...content },
})

// biome-ignore lint/suspicious/noExplicitAny: every case breaks a different part of it.
const valid = (): any => ({
  openapi: '3.1.0',
  info: {
    title: 'Things',
    version: '1',
    description: 'An API.',
    license: { name: 'MIT', identifier: 'MIT' },
    contact: { name: 'The authors' },
  },
  servers: [{ url: 'https://berth.test/api' }],
  tags: [{ name: 'things', description: 'Things' }],
  security: [{ bearer: [] }],
  components: {
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    schemas: {
      Thing: {
        type: 'object',
        properties: { name: { type: 'string' }, list: { type: 'array', items: { type: 'string' } } },
      },
    },
  },
  paths: {
    [things]: {
      get: {
        ...text('getThing'),
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
        responses: { ...responses, 200: { description: 'A thing', content: json({}) } },
      },
    },
  },
  webhooks: { thing: { post: { ...text('receiveThing'), responses } } },
})

type Document = ReturnType<typeof valid>
const get = (root: Document) => root.paths[things].get
const thing = (root: Document) => root.components.schemas.Thing
const name = (root: Document) => thing(root).properties.name
const parameter = (root: Document, more: object) => get(root).parameters.push({ name: 'q', in: 'query', ...more })
const move = (root: Document, path: string) => {
  root.paths = { [path]: root.paths[things] }
}
const body = (root: Document, content: object) => {
  get(root).responses[200].content = json(content)
}

const cases: [rule: string, how: string, spoil: (root: Document) => unknown][] = [
  ['struct', 'an unknown field', (root) => (get(root).responses[200].other = 1)],
  ['struct', 'no title', (root) => delete root.info.title],
  ['struct', 'a parameter without schema', (root) => parameter(root, {})],
  ['struct', 'a negative length', (root) => (name(root).minLength = -1)],
  ['struct', 'an unknown type', (root) => (name(root).type = 'text')],
  [
    'struct',
    'a variable of a server without default',
    (root) => {
      root.servers[0] = { url: 'https://{a}.test', variables: { a: { enum: ['b'] } } }
    },
  ],
  ['info-license', 'no license', (root) => delete root.info.license],
  ['info-license-strict', 'a license without identifier', (root) => delete root.info.license.identifier],
  ['info-contact', 'no contact', (root) => delete root.info.contact],
  ['no-empty-servers', 'no servers', (root) => (root.servers = [])],
  ['no-server-example.com', 'a server for documentation', (root) => (root.servers[0].url = 'https://example.com')],
  ['no-server-trailing-slash', 'a slash after a server', (root) => (root.servers[0].url += '/')],
  ['no-undefined-server-variable', 'an unknown variable', (root) => (root.servers[0].url = 'https://{a}.test')],
  [
    'no-undefined-server-variable',
    'an unused variable',
    (root) => (root.servers[0].variables = { a: { default: 'b' } }),
  ],
  [
    'no-server-variables-empty-enum',
    'a default outside its enum',
    (root) => {
      root.servers[0] = { url: 'https://{a}.test', variables: { a: { enum: ['b'], default: 'c' } } }
    },
  ],
  ['tag-description', 'a tag without description', (root) => delete root.tags[0].description],
  ['no-duplicated-tag-names', 'a tag twice', (root) => root.tags.push(root.tags[0])],
  ['security-defined', 'an unknown scheme', (root) => (get(root).security = [{ other: [] }])],
  [
    'security-scopes-defined',
    'an unknown scope',
    (root) => {
      const flows = { clientCredentials: { tokenUrl: 'https://berth.test/token', scopes: {} } }
      root.components.securitySchemes.bearer = { type: 'oauth2', flows }
      root.security = [{ bearer: ['other'] }]
    },
  ],
  [
    'no-unresolved-refs',
    'a reference to nothing',
    (root) => (get(root).responses[400] = { $ref: '#/components/none' }),
  ],
  [
    'spec-ref-siblings',
    'a description beside a reference',
    (root) => {
      root.components.responses = { Refused: { description: 'Refused', content: json({}) } }
      get(root).responses[400] = { $ref: '#/components/responses/Refused', headers: {} }
    },
  ],
  ['no-unused-components', 'an unused schema', (root) => (root.components.schemas.Other = { type: 'string' })],
  ['no-unused-components', 'an unused response', (root) => (root.components.responses = { A: { description: 'A' } })],
  ['spec-components-invalid-map-name', 'a blank in a name', (root) => (root.components.schemas['a b'] = {})],
  ['no-path-trailing-slash', 'a slash after a path', (root) => move(root, `${things}/`)],
  ['no-identical-paths', 'a path twice', (root) => (root.paths['/things/{name}'] = root.paths[things])],
  ['no-ambiguous-paths', 'two paths for one request', (root) => (root.paths['/{all}/one'] = root.paths[things])],
  ['path-declaration-must-exist', 'a parameter without name', (root) => move(root, '/things/{}')],
  ['path-not-include-query', 'a query in a path', (root) => move(root, `${things}?a=b`)],
  ['path-parameters-defined', 'an undefined parameter', (root) => (get(root).parameters = [])],
  ['path-parameters-defined', 'an unused parameter', (root) => move(root, '/things')],
  ['operation-operationId', 'no operationId', (root) => delete get(root).operationId],
  ['operation-operationId-unique', 'an operationId twice', (root) => (root.paths['/others'] = root.paths[things])],
  ['operation-operationId-url-safe', 'a blank in an operationId', (root) => (get(root).operationId = 'get thing')],
  ['operation-summary', 'no summary', (root) => delete get(root).summary],
  ['operation-description', 'no description', (root) => delete get(root).description],
  ['operation-tag-defined', 'an unknown tag', (root) => (get(root).tags = ['other'])],
  ['operation-2xx-response', 'no success', (root) => delete get(root).responses[200]],
  ['operation-4xx-response', 'no refusal', (root) => delete get(root).responses[400]],
  ['operation-parameters-unique', 'a parameter twice', (root) => get(root).parameters.push(get(root).parameters[0])],
  ['no-schema-type-mismatch', 'items of an object', (root) => (thing(root).items = {})],
  ['no-enum-type-mismatch', 'a number among strings', (root) => (name(root).enum = [1])],
  ['no-duplicated-enum-values', 'a value twice', (root) => (name(root).enum = ['a', 'a'])],
  ['no-required-schema-properties-undefined', 'an unknown property', (root) => (thing(root).required = ['other'])],
  ['no-illogical-composition-keywords', 'a choice of one', (root) => (name(root).oneOf = [{ type: 'string' }])],
  [
    'no-mixed-number-range-constraints',
    'two minimums',
    (root) => {
      thing(root).properties.name = { type: 'integer', minimum: 1, exclusiveMinimum: 1 }
    },
  ],
  ['no-unsafe-markdown', 'a script in a description', (root) => (name(root).description = 'a <script>')],
  ['no-invalid-schema-examples', 'a wrong example', (root) => (name(root).examples = [1])],
  ['no-invalid-schema-examples', 'a wrong single example', (root) => (name(root).example = 1)],
  [
    'no-invalid-parameter-examples',
    'a wrong example',
    (root) => {
      parameter(root, { schema: { type: 'integer' }, example: 'a' })
    },
  ],
  ['no-invalid-media-type-examples', 'a wrong example', (root) => body(root, { example: { name: 1 } })],
  [
    'no-example-value-and-externalValue',
    'two values',
    (root) => {
      body(root, { examples: { a: { value: {}, externalValue: 'https://berth.test/a' } } })
    },
  ],
  ['berth/example-value', 'no value', (root) => body(root, { examples: { a: { summary: 'A' } } })],
  ['berth/valid-document', 'a license with two sources', (root) => (root.info.license.url = 'https://berth.test')],
  ['berth/valid-document', 'an email without domain', (root) => (root.info.contact.email = 'a')],
  [
    'berth/valid-document',
    'a style of another place',
    (root) => {
      parameter(root, { schema: { type: 'string' }, style: 'matrix' })
    },
  ],
  ['berth/valid-document', 'schema and content', (root) => parameter(root, { schema: {}, content: json({}) })],
  ['berth/valid-document', 'an optional part of a path', (root) => (get(root).parameters[0].required = false)],
  ['berth/valid-document', 'a type twice', (root) => (name(root).type = ['string', 'string'])],
  ['berth/valid-document', 'a required field twice', (root) => (thing(root).required = ['name', 'name'])],
  ['berth/valid-patterns', 'an open group', (root) => (name(root).pattern = '(')],
  ['berth/valid-defaults', 'a wrong default', (root) => (name(root).default = 1)],
  [
    'berth/valid-defaults',
    'a default above its maximum',
    (root) => {
      parameter(root, { schema: { type: 'integer', maximum: 5, default: 9 } })
    },
  ],
  ['berth/array-items', 'an array of anything', (root) => delete thing(root).properties.list.items],
  [
    'berth/array-items',
    'an array of anything, or null',
    (root) => {
      thing(root).properties.list = { type: ['array', 'null'] }
    },
  ],
  ['berth/no-code-in-text', 'eval in a description', (root) => (get(root).description = 'eval(a)')],
  ['berth/no-code-in-text', 'a script in a title', (root) => (thing(root).title = 'a <script>')],
  ['berth/info-description', 'no description', (root) => delete root.info.description],
  ['berth/operation-tags', 'no tags', (root) => delete get(root).tags],
  ['berth/operation-tags', 'an empty list of tags', (root) => (get(root).tags = [])],
  ['berth/path-parameters-unique', 'a parameter twice', (root) => move(root, '/things/{id}/{id}')],
  [
    'berth/no-nested-callbacks',
    'a callback of a callback',
    (root) => {
      get(root).callbacks = callback({ callbacks: callback({}) })
    },
  ],
  ['berth/plain-webhooks', 'callbacks of a webhook', (root) => (root.webhooks.thing.post.callbacks = callback({}))],
  ['berth/plain-webhooks', 'servers of a webhook', (root) => (root.webhooks.thing.post.servers = root.servers)],
  ['berth/no-unused-links', 'an unused link', (root) => (root.components.links = { A: { operationId: 'getThing' } })],
  ['berth/no-unused-links', 'an unused callback', (root) => (root.components.callbacks = callback({}))],
]

const found = new Map<string, string[]>()
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-lint-'))
  const files = [
    valid,
    ...cases.map(([, , spoil]) => () => {
      const root = structuredClone(valid())
      spoil(root)
      return root
    }),
  ].map(async (document, index) => {
    const file = join(directory, `${index}.json`)
    await writeFile(file, JSON.stringify(document()))
    return file
  })
  const options = ['lint', '--config', 'test/lint/redocly.yaml', '--format', 'json', ...(await Promise.all(files))]
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  // Redocly exits with 1 when it finds problems, and prints one JSON object per document with no separator.
  const output = await new Promise<string>((resolve) => {
    execFile('node_modules/.bin/redocly', options, { env, maxBuffer: 2 ** 26 }, (_, stdout) => resolve(stdout))
  })
  const problems = output.split(/(?<=^\})(?=\{$)/m).flatMap((part) => JSON.parse(part).problems as Problem[])
  for (const { ruleId, location } of problems) {
    const file = basename(location[0]!.source.ref)
    found.set(file, [...(found.get(file) ?? []), ruleId])
  }
})

afterAll(() => rm(directory, { recursive: true }))

test('a valid document has no problem', () => {
  expect(found.get('0.json')).toBeUndefined()
})

test.each(cases.map(([rule, how], index) => ({ rule, how, index })))('$rule reports $how', ({ rule, index }) => {
  expect(found.get(`${index + 1}.json`)).toContain(rule)
})
