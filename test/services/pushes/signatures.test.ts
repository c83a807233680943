import { expect, it } from 'vitest'
import { payloadOfForm } from '../../../src/services/pushes/signatures.ts'
import { counted, takesLinearSteps } from '../../helpers/steps/steps.ts'

type Signatures = typeof import('../../../src/services/pushes/signatures.ts')
const counting = await counted<Signatures>('src/services/pushes/signatures.ts')

it('reads the payload of a form, wherever it stands', () => {
  expect(payloadOfForm('payload=%7B%22a%22%3A+%22%C3%A9%26%22%7D')).toBe('{"a": "é&"}')
  expect(payloadOfForm('a=1&payload=%7B%7D&payload=2')).toBe('{}')
  expect(payloadOfForm('a&payload={"b=c"}&d')).toBe('{"b=c"}')
  for (const none of ['', 'a=1', 'other_payload=1', 'payload', 'payload=']) expect(payloadOfForm(none)).toBe('')
})

it('reads a form of many fields in linear steps, since anybody may send one', async () => {
  await takesLinearSteps(4 << 10, (size) => {
    counting.payloadOfForm('a&'.repeat(size / 2))
    counting.payloadOfForm('&payload'.repeat(size / 8))
  })
})
