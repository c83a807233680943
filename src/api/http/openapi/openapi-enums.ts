// Names enums that occur in several places of openapi.yaml, so that clients get one type each.
import { enums } from '../../../schemas/all.ts'

type Node = Record<string, unknown>

const nameOf = new Map(Object.entries(enums).map(([name, values]) => [values.join(), name]))

/** The value with every named enum replaced by a reference. */
function referring(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(referring)
  if (value === null || typeof value !== 'object') return value
  const node = value as Node
  const name = node.type === 'string' && Array.isArray(node.enum) ? nameOf.get(node.enum.join()) : undefined
  if (!name) return Object.fromEntries(Object.entries(node).map(([key, item]) => [key, referring(item)]))
  const { type: _type, enum: _values, ...rest } = node
  return { $ref: `#/components/schemas/${name}`, ...rest }
}

export function nameEnums<T extends { components: { schemas: object } }>(document: T): T {
  const result = referring(document) as T
  const named = Object.entries(enums).map(([name, values]) => [name, { type: 'string', enum: [...values] }])
  const schemas = Object.entries({ ...result.components.schemas, ...Object.fromEntries(named) })
  result.components.schemas = Object.fromEntries(schemas.sort(([a], [b]) => (a < b ? -1 : 1)))
  return result
}
