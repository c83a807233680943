// The packets of tier 1, many more of them.
import './fuzz.test.ts'
