import { expect, it } from 'vitest'
import { payloadOfForm } from '../../../src/services/pushes/signatures.ts'
import { takesLinearTime } from '../../helpers/linear-time.ts'

it('reads the payload of a form, wherever it stands', () => {
  expect(payloadOfForm('payload=%7B%22a%22%3A+%22%C3%A9%26%22%7D')).toBe('{"a": "é&"}')
  expect(payloadOfForm('a=1&payload=%7B%7D&payload=2')).toBe('{}')
  expect(payloadOfForm('a&payload={"b=c"}&d')).toBe('{"b=c"}')
  for (const none of ['', 'a=1', 'other_payload=1', 'payload', 'payload=']) expect(payloadOfForm(none)).toBe('')
})

it('reads a form of many fields in linear time, since anybody may send one', () => {
  takesLinearTime({ small: 64 << 10, large: 512 << 10 }, (size) => {
    payloadOfForm('a&'.repeat(size / 2))
    payloadOfForm('&payload'.repeat(size / 8))
  })
})
