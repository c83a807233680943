// Tier 2: kills, restarts, clusters, browsers, large zones and long fuzzing.
import { defineConfig } from 'vitest/config'
import tier1 from './vitest.config.ts'

export default defineConfig({
  ...tier1,
  test: {
    ...tier1.test,
    include: ['test/**/*.system.test.ts'],
    exclude: [],
    env: { BERTH_TIER: 'system' },
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
