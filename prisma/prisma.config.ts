// The Prisma CLI's configuration, used only for `prisma generate`.
import { defineConfig } from 'prisma/config'

// Keeps the CLI from downloading a native schema engine, which generating a client doesn't need.
process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath

export default defineConfig({ schema: 'schema.prisma' })
