// What is counted, in the order in which engines count it and the tables of rollups have it.
import { answerCodes, questionTypes } from './traffic.ts'

/** Rollups are kept by minute for two days, and by hour for 13 months. */
export const rollupSteps = ['minute', 'hour'] as const
export type RollupStep = (typeof rollupSteps)[number]

/** Upper bounds of the time until an answer begins; the last count is of what exceeds all of them. */
export const durationBoundsMs = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10_000] as const

/** Columns of the table traffic. */
export const edgeColumns = [
  'bytes',
  'duration_us',
  ...['s1', 's2', 's3', 's4', 's5'],
  ...[...durationBoundsMs, 'more'].map((_bound, index) => `d${index}`),
] as const

/** Where a count is; those of answers by class of status are at `status` plus the class, from 1 to 5. */
export const edgeAt = { bytes: 0, durationUs: 1, status: 1, durations: 7 } as const

/** Columns of the table dns_traffic: each question is counted by its type, and by the code of its answer. */
export const dnsColumns = [
  ...questionTypes.map((type) => `type_${type.toLowerCase()}`),
  ...answerCodes.map((code) => `rcode_${code.toLowerCase()}`),
]
