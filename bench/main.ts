// Benchmarks by name: `npm run bench -- api`; without a name, every one of them in turn.

const benches: Record<string, () => Promise<{ run(args: string[]): Promise<void> }>> = {
  api: () => import('./api/run.ts'),
  build: () => import('./build/run.ts'),
  deploy: () => import('./deploy/run.ts'),
  dns: () => import('./dns/run.ts'),
  edge: () => import('./edge/run.ts'),
  events: () => import('./events/run.ts'),
  fairness: () => import('./fairness/run.ts'),
  lists: () => import('./lists/run.ts'),
  roles: () => import('./roles/run.ts'),
  servers: () => import('./servers/run.ts'),
  tls: () => import('./tls/run.ts'),
}

const [name, ...args] = process.argv.slice(2)
if (name !== undefined && !(name in benches)) {
  console.error(`There is no benchmark ${name}; known are ${Object.keys(benches).join(', ')}.`)
  process.exitCode = 2
} else {
  for (const wanted of name === undefined ? Object.keys(benches) : [name]) {
    const bench = await benches[wanted]!()
    await bench.run(args)
  }
}
