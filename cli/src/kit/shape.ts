// Responses whose fields don't have the types of the API: those of a broken server, or of something that isn't Berth.
import { InvalidResponse } from '../../../sdk/src/errors.ts'

/** Reads from a response. A field of the wrong type is the server's error, so it's told as one. */
export function fromServer<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof TypeError) throw new InvalidResponse('The server sent a malformed response.')
    throw error
  }
}
