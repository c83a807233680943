// Validators and serializers of routes, compiled on first use: compiling them all is a third of the startup time.
import SerializerSelector from '@fastify/fast-json-stringify-compiler'

/**
 * A schema that can't be compiled would fail the first request to its route, so a test compiles all of them at
 * startup.
 */
export const compiling = { eagerly: false }

/** Calls `make` on first use. */
export function lazily<In, Out>(make: () => (value: In) => Out): (value: In) => Out {
  let compiled = compiling.eagerly ? make() : null
  return (value) => {
    compiled ??= make()
    return compiled(value)
  }
}

type Factory = ReturnType<typeof SerializerSelector.SerializerSelector>
type Serializer = ReturnType<ReturnType<Factory>>

const factory = SerializerSelector.SerializerSelector()

/** Cached by schema text: most errors share one schema, and so do all apps of a process, as in a test run. */
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

/** The compiler reads every schema it gets, so it gets only those that `text` refers to. */
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
