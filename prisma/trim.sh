# Removes about 160 MB of unused files that `npm install` adds. Runs after `prisma generate`; running it again is harmless.
# The C++ headers of Node: `node` hard-links the program it needs out of this folder.
rm -rf node_modules/node/node_modules
# Query compilers for other databases, in Prisma's client and in its CLI.
for database in cockroachdb mysql sqlite sqlserver; do
  rm -f node_modules/@prisma/client/runtime/query_compiler_*."$database".* node_modules/prisma/build/query_compiler_*."$database".*
done
# Only Prisma's CLI uses `effect`, and it requires the CommonJS build.
rm -rf node_modules/effect/src node_modules/effect/dist/esm
# Prisma Studio's page; the rest of it isn't installed either.
rm -f node_modules/prisma/build/studio.js node_modules/prisma/build/studio.css
