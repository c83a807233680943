// Where the Prisma CLI finds the schema; only `prisma generate` is ever run with it.
import { defineConfig } from 'prisma/config'

// The CLI would download a native schema engine even to generate a client, which needs none.
process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath

export default defineConfig({ schema: 'schema.prisma' })
