import { testPart } from './smoke.ts'

testPart('lists')
