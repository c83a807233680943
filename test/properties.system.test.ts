// The long properties of tier 1, with all their values.
import './dns/hostile.test.ts'
import './engines/edge/barred-sequences.test.ts'
import './engines/nameserver/random-names.test.ts'
import './services/token-lineage.test.ts'
