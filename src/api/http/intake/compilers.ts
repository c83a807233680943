// Validators and serializers of routes, made at their first use: all of them together are a third of a start.
import SerializerSelector from '@fastify/fast-json-stringify-compiler'

/** A schema that cannot be compiled would fail the first request to its route: a test makes all of them at the start. */
export const compiling = { eagerly: false }

/** The function that `make` returns, made when it is called first. */
export function lazily<In, Out>(make: () => (value: In) => Out): (value: In) => Out {
  let made = compiling.eagerly ? make() : null
  return (value) => {
    made ??= make()
    return made(value)
  }
}

type Factory = ReturnType<typeof SerializerSelector.SerializerSelector>
type Serializer = ReturnType<ReturnType<Factory>>

const factory = SerializerSelector.SerializerSelector()

/** By the text of their schemas: most errors share one, and so do all apps of a process, such as those of a test run. */
const serializers = new Map<string, Serializer>()

export const buildSerializer: Factory = (externalSchemas, options) => {
  const known = new Map<string, Serializer>()
  return (route) => {
    const text = JSON.stringify(route.schema)
    const shared =
      known.get(text) ??
      lazily(() => {
        const needed = referencedBy(text, externalSchemas)
        const key = JSON.stringify([text, needed])
        const serializer = serializers.get(key) ?? factory(needed, options)(route)
        serializers.set(key, serializer)
        return serializer
      })
    known.set(text, shared)
    return shared
  }
}

/** The compiler reads every schema it is given, so it gets only those that `text` refers to. */
function referencedBy(text: string, externalSchemas: unknown): unknown {
  const all = externalSchemas as Record<string, unknown>
  const found: Record<string, unknown> = {}
  const visit = (json: string) => {
    for (const [, id] of json.matchAll(/"\$ref":"([^"#]+)/g)) {
      if (id! in found || !(id! in all)) continue
      found[id!] = all[id!]
      visit(JSON.stringify(found[id!]))
    }
  }
  visit(text)
  return found
}
