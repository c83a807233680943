import { testPart } from './smoke.ts'

testPart('sites')
