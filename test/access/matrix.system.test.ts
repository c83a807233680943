// The matrix of tier 1, with every malformed header for every operation.
import './matrix.test.ts'
