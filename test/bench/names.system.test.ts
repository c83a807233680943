import { testPart } from './smoke.ts'

testPart('names')
