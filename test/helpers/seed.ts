// Properties try the same values in every run of the suite: what fails does so again. `npm run test:fuzz` tries others.
import fc from 'fast-check'

const { BERTH_FUZZ_SEED, BERTH_FUZZ_RUNS, BERTH_TAKEOVER_ALL } = process.env
const other = BERTH_FUZZ_RUNS || BERTH_TAKEOVER_ALL ? Date.now() % 2 ** 31 : 20261114
fc.configureGlobal({ seed: Number(BERTH_FUZZ_SEED ?? 0) || other })
