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

const factory = SerializerSelector.SerializerSelector()

/** Answers with the same schema, as those of most faults are, share a serializer. */
export const buildSerializer: Factory = (externalSchemas, options) => {
  const compile = factory(externalSchemas, options)
  const known = new Map<string, ReturnType<typeof compile>>()
  return (route) => {
    const text = JSON.stringify(route.schema)
    const shared = known.get(text) ?? lazily(() => compile(route))
    known.set(text, shared)
    return shared
  }
}
