import { testPart } from './smoke.ts'

testPart('builds')
