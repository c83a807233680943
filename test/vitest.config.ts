// How the tests are run: one PostgreSQL for all, a database of its own for every test file.
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './helpers/sequencer.ts'

const report = process.env.BERTH_TEST_REPORT

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/helpers/postgres.ts'],
    setupFiles: ['test/helpers/seed.ts'],
    // Nothing here is measured by a clock: these only end what hangs, also on a machine that is busy with other work.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    // Files run side by side on their own databases; two cores carry no more.
    maxWorkers: 2,
    pool: 'forks',
    // One process for many files: loading the program anew for each was a third of the whole time.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    // Which files failed, for the run that tries those once more.
    reporters: report ? ['default', ['json', { outputFile: report }]] : ['default'],
  },
})
