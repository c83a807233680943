// Tier 2: kills, restarts, clusters, browsers, large zones and long fuzzing, with other values in every run.
import { defineConfig } from 'vitest/config'
import tier1 from './vitest.config.ts'

const seed = process.env.BERTH_SEED ?? String(Date.now() % 2 ** 31)
console.info(`BERTH_SEED=${seed} repeats this run`)

export default defineConfig({
  ...tier1,
  test: {
    ...tier1.test,
    include: ['test/**/*.system.test.ts'],
    exclude: [],
    env: { BERTH_TIER: 'system', BERTH_SEED: seed },
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
