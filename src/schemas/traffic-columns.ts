// Traffic counters, in the order of the engines' arrays and of the rollup tables.
import { answerCodes, questionTypes } from './traffic.ts'

/** Rollups are stored by minute for two days, and by hour for 13 months. */
export const rollupSteps = ['minute', 'hour'] as const
export type RollupStep = (typeof rollupSteps)[number]

/** Upper bounds of the time to the first byte; the last counter is for slower responses. */
export const durationBoundsMs = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10_000] as const

/** Columns of the table traffic. */
export const edgeColumns = [
  'bytes',
  'duration_us',
  ...['s1', 's2', 's3', 's4', 's5'],
  ...[...durationBoundsMs, 'more'].map((_bound, index) => `d${index}`),
] as const

/** Positions in a row of counters; responses by status class are at `status` plus the class, from 1 to 5. */
export const edgeAt = { bytes: 0, durationUs: 1, status: 1, durations: 7 } as const

/** Columns of the table dns_traffic: each query counts by its type and by its response code. */
export const dnsColumns = [
  ...questionTypes.map((type) => `type_${type.toLowerCase()}`),
  ...answerCodes.map((code) => `rcode_${code.toLowerCase()}`),
]
