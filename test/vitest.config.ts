// Tier 1: every guarantee that a database, sockets and short-lived processes can show.
import { configDefaults, defineConfig } from 'vitest/config'
import { countSteps } from './helpers/steps/plugin.ts'

export default defineConfig({
  plugins: [countSteps()],
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, 'test/**/*.system.test.ts'],
    globalSetup: ['test/helpers/postgres.ts'],
    setupFiles: ['test/helpers/seed.ts'],
    // Nothing here is measured by a clock: these only end what hangs, also on a machine that is busy with other work.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 90_000 } },
    // Two cores carry three, since many files wait for processes, deadlines and leases half of their time.
    maxWorkers: 3,
    pool: 'forks',
    // One process for many files: loading the program anew for each was a third of the whole time.
    isolate: false,
  },
})
