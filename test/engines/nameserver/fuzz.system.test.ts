// The packets and updates of tier 1, many more of them.
import './fuzz.test.ts'
import './update/fuzz.test.ts'
