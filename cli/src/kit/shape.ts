// Handles responses with unexpected types, from a broken server or something that isn't Berth.
import { InvalidResponse } from '../../../sdk/src/errors.ts'

/** Reads from a response, and reports a field of the wrong type as the server's error. */
export function fromServer<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof TypeError) throw new InvalidResponse('The server sent a malformed response.')
    throw error
  }
}
