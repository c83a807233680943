// Holds every answer of every test against openapi.yaml's schema for its path, method and status.
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { App } from '../../src/api/app.ts'
import type { Answer } from './api.ts'

type Response = { $ref?: string; content?: Record<string, { schema: object }> }
type Operation = { responses: Record<string, Response> }
type Document = {
  paths: Record<string, Record<string, Operation>>
  components: { responses: Record<string, Response> }
}

export function createResponseChecker(app: App): (method: string, path: string, answer: Answer) => void {
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
    // The most literal path wins, as in the router: /deployments/states before /deployments/{id}.
    .sort((a, b) => b.fixed - a.fixed)

  return (method, path, answer) => {
    if (method === 'HEAD') return
    const found = templates.find(({ pattern }) => pattern.test(path.split('?')[0]!))
    const operation = found && document.paths[found.template]?.[method.toLowerCase()]
    const response = operation?.responses[answer.status]
    const shared = response?.$ref?.split('/').pop()
    const declared = shared ? document.components.responses[shared] : response
    const where = `${method} ${path} → ${answer.status}`
    if (!operation) {
      if (answer.status < 400) throw new Error(`${where}: openapi.yaml does not know this operation`)
      return
    }
    if (!declared) {
      // 304 answers a conditional read and 405 another method; every other status must be declared.
      if (answer.status === 304) return
      throw new Error(`${where}: openapi.yaml does not declare this status\n${answer.text}`)
    }
    if (answer.body === undefined) return
    const type = String(answer.headers['content-type']).split(';')[0]!
    if (!declared.content?.[type]) throw new Error(`${where}: openapi.yaml does not declare ${type}`)
    const part = (text: string) => text.replaceAll('~', '~0').replaceAll('/', '~1')
    const place = shared
      ? ['components', 'responses', shared]
      : ['paths', found.template, method.toLowerCase(), 'responses', String(answer.status)]
    const pointer = [...place, 'content', type, 'schema']
    const validate = ajv.getSchema(`openapi.json#/${pointer.map(part).map(encodeURIComponent).join('/')}`)
    if (!validate?.(answer.body)) {
      throw new Error(`${where} does not match its schema: ${ajv.errorsText(validate?.errors)}\n${answer.text}`)
    }
  }
}
