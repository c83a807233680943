// Properties try the same values in every run, so that what fails does so again. BERTH_SEED chooses other ones.
import fc from 'fast-check'

export const seed = Number(process.env.BERTH_SEED ?? 0) || 20261114
fc.configureGlobal({ seed })

/** Tier 2 tries many more values than tier 1 has time for. */
export const isSystemTier = process.env.BERTH_TIER === 'system'
