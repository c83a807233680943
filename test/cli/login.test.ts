// `berth login` waits between polls, whatever interval the server names.
import { expect, test } from 'vitest'
import { pollMsOf } from '../../cli/src/commands/login.ts'

test.each([
  [undefined, 5_000],
  [null, 5_000],
  ['3', 5_000],
  ['soon', 5_000],
  [{}, 5_000],
  [-1, 1_000],
  [0, 1_000],
  [0.001, 1_000],
  [7, 7_000],
  [1e300, 60_000],
  [2 ** 31, 60_000],
])('an interval of %j', (interval, waitMs) => expect(pollMsOf(interval)).toBe(waitMs))
