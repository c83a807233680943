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
    // Nothing is measured by a clock. These timeouts only catch hangs, also on a busy machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 90_000 } },
    // Three workers for two cores, because many files spend half of their time waiting for processes, deadlines and leases.
    maxWorkers: 3,
    pool: 'forks',
    // One process runs many files: loading the program for each took a third of the time.
    isolate: false,
  },
})
