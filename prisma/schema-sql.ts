// Development only: prints the SQL that creates the database of schema.prisma, from Prisma's WASM engine.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { PrismaPg } from '@prisma/adapter-pg'
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils'

const schemaPath = join(import.meta.dirname, 'schema.prisma')

export async function schemaSql(url: string): Promise<string> {
  const folder = dirname(createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm'))
  // The package's own entry expects a bundler that loads .wasm; these lines do what the bundler would.
  const bindings = await import(join(folder, 'schema_engine_bg.js'))
  // biome-ignore lint/suspicious/noExplicitAny: Node's types lack WebAssembly.
  const wasm = await (globalThis as any).WebAssembly.instantiate(
    await readFile(join(folder, 'schema_engine_bg.wasm')),
    {
      './schema_engine_bg.js': bindings,
    },
  )
  bindings.__wbg_set_wasm(wasm.instance.exports)
  const start = wasm.instance.exports.__wbindgen_start as () => void
  start()
  const files = [{ path: schemaPath, content: await readFile(schemaPath, 'utf8') }]
  // The engine reads only the version of the database.
  const adapter = bindMigrationAwareSqlAdapterFactory(new PrismaPg({ connectionString: url }))
  const engine = await bindings.SchemaEngine.new({ datamodels: [[schemaPath, files[0]!.content]] }, () => {}, adapter)
  const result = await engine.diff({
    from: { tag: 'empty' },
    to: { tag: 'schemaDatamodel', files },
    script: true,
    shadowDatabaseUrl: null,
    exitCode: null,
    filters: { externalTables: [], externalEnums: [] },
  })
  return result.stdout
}

if (process.argv[1] === import.meta.filename) console.log(await schemaSql(process.argv[2]!))
