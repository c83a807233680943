// How long things are stored.
import { Type } from '@sinclair/typebox'
import type { Values } from './variables.ts'

/** A number; 0 and `never` mean that nothing is deleted. */
const Retention = (fallback: number) => Type.String({ pattern: '^(never|\\d{1,5})$', default: String(fallback) })

export const retentionVariables = {
  RETENTION_EVENTS_MONTHS: Retention(13),
  RETENTION_LOG_DAYS: Retention(90),
  RETENTION_PREVIEWS: Retention(10),
  RETENTION_PREVIEW_DAYS: Retention(30),
  RETENTION_DELETED_BRANCH_HOURS: Retention(24),
  RETENTION_DELIVERY_DAYS: Retention(30),
  RETENTION_FAILED_JOB_DAYS: Retention(30),
}

export function retentionSettings(env: Values<typeof retentionVariables>) {
  return {
    /** Null: nothing is deleted. */
    retention: {
      /** Whole months, not counting the current one. */
      eventsMonths: parseRetention(env.RETENTION_EVENTS_MONTHS),
      logDays: parseRetention(env.RETENTION_LOG_DAYS),
      /** Per project. */
      previews: parseRetention(env.RETENTION_PREVIEWS),
      previewDays: parseRetention(env.RETENTION_PREVIEW_DAYS),
      /** Previews of a branch, counted from its deletion. */
      deletedBranchHours: parseRetention(env.RETENTION_DELETED_BRANCH_HOURS),
      deliveryDays: parseRetention(env.RETENTION_DELIVERY_DAYS),
      failedJobDays: parseRetention(env.RETENTION_FAILED_JOB_DAYS),
    },
  }
}

function parseRetention(text: string): number | null {
  return text === 'never' || Number(text) === 0 ? null : Number(text)
}
