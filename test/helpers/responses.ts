// Checks every response in every test against openapi.yaml: its status, headers and body.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { App } from '../../src/api/app.ts'
import type { Answer } from './api.ts'

type Reference = { $ref?: string }
type Header = Reference & { required?: boolean }
type Response = Reference & { headers?: Record<string, Header>; content?: Record<string, { schema: object }> }
type Operation = { responses: Record<string, Response> }
type Document = {
  paths: Record<string, Record<string, Operation>>
  components: { responses: Record<string, Response>; headers: Record<string, Header> }
}

// Headers of HTTP and of the connection, which belong to no operation.
const transport =
  /^(content-(type|length|encoding)|date|connection|keep-alive|transfer-encoding|cache-control|vary|x-content-type-options|x-accel-buffering|strict-transport-security|access-control-.+)$/

const lastPart = (reference: string) => reference.split('/').pop()!
const escaped = (text: string) => encodeURIComponent(text.replaceAll('~', '~0').replaceAll('/', '~1'))

function readDocument(app: App) {
  const document = (app as unknown as { swagger(): unknown }).swagger() as Document
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  ;(addFormats as unknown as (ajv: Ajv2020) => void)(ajv)
  ajv.addSchema(document, 'openapi.json')
  const templates = Object.keys(document.paths)
    .map((template) => ({
      template,
      pattern: new RegExp(`^${template.replace(/\{[^}]+\}/g, '[^/]+')}$`),
      fixed: template.replace(/\{[^}]+\}/g, '').length,
    }))
    // The most literal path wins, like in the router: /deployments/states before /deployments/{id}.
    .sort((a, b) => b.fixed - a.fixed)

  return {
    operationOf(method: string, path: string) {
      const found = templates.find(({ pattern }) => pattern.test(path.split('?')[0]!))
      // HEAD has the response of GET, without a body.
      const name = method === 'HEAD' ? 'get' : method.toLowerCase()
      const operation = found && document.paths[found.template]?.[name]
      return operation && { ...operation, place: ['paths', found.template, name, 'responses'] }
    },
    responseOf(operation: Operation & { place: string[] }, status: number) {
      const response = operation.responses[status]
      if (!response?.$ref) return response && { ...response, place: [...operation.place, String(status)] }
      const name = lastPart(response.$ref)
      return { ...document.components.responses[name]!, place: ['components', 'responses', name] }
    },
    isRequired: (header: Header) =>
      (header.$ref ? document.components.headers[lastPart(header.$ref)] : header)?.required ?? false,
    validatorOf(place: string[], type: string): ValidateFunction {
      const pointer = [...place, 'content', type, 'schema'].map(escaped).join('/')
      return ajv.getSchema(`openapi.json#/${pointer}`)!
    },
    errorsOf: (validate: ValidateFunction) => ajv.errorsText(validate.errors),
  }
}

// Every app declares the same operations, and compiling them takes a second.
let known: ReturnType<typeof readDocument> | undefined

function documentOf(app: App) {
  known ??= readDocument(app)
  return known
}

export type Check = (method: string, path: string, answer: Answer) => void

export function createResponseChecker(app: App): Check {
  return (method, path, answer) => {
    // A CORS preflight is not an operation.
    if (method === 'OPTIONS') return
    const document = documentOf(app)
    const operation = document.operationOf(method, path)
    const where = `${method} ${path} → ${answer.status}`
    if (!operation) {
      if (answer.status < 400) throw new Error(`${where}: openapi.yaml does not know this operation`)
      return
    }
    const declared = document.responseOf(operation, answer.status)
    if (!declared) throw new Error(`${where}: openapi.yaml does not declare this status\n${answer.text}`)

    const headers = Object.entries(declared.headers ?? {}).map(
      ([name, header]) => [name.toLowerCase(), header] as const,
    )
    const known = new Set<string>(headers.map(([name]) => name))
    const stranger = Object.keys(answer.headers).find((name) => !transport.test(name) && !known.has(name))
    if (stranger) throw new Error(`${where}: openapi.yaml does not declare the header ${stranger}`)
    const missing = headers.find(([name, header]) => document.isRequired(header) && answer.headers[name] === undefined)
    if (missing) throw new Error(`${where}: openapi.yaml requires the header ${missing[0]}`)

    if (method === 'HEAD' || answer.body === undefined) return
    const type = String(answer.headers['content-type']).split(';')[0]!
    if (!declared.content?.[type]) throw new Error(`${where}: openapi.yaml does not declare ${type}`)
    const validate = document.validatorOf(declared.place, type)
    if (validate(answer.body)) return
    throw new Error(`${where} does not match its schema: ${document.errorsOf(validate)}\n${answer.text}`)
  }
}

/** Checks a message of a stream the same way. */
export function checkMessage(app: App, path: string, message: object): void {
  const document = documentOf(app)
  const { place } = document.operationOf('GET', path)!
  const validate = document.validatorOf([...place, '200'], 'text/event-stream')
  if (validate(message)) return
  throw new Error(`a message of ${path} does not match: ${document.errorsOf(validate)}\n${JSON.stringify(message)}`)
}
