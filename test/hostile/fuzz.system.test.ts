// The requests of tier 1, many more of them.
import './bodies.test.ts'
import './cursors.test.ts'
import './headers.test.ts'
