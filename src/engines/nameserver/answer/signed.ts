// Authenticates signed requests: finds the key by name, verifies the signature, and answers errors.
import { rcodes } from '../../../dns/packet/numbers.ts'
import {
  createSigner,
  readTsig,
  type Signer,
  signError,
  type Tsig,
  type TsigKey,
  tsigErrors,
  verify,
} from '../../../dns/packet/tsig.ts'
import { refusal } from './messages.ts'
import type { TransferRequest } from './transfers.ts'

/** A request whose sender has the key. */
export type Authenticated<K> = { key: K; tsig: Tsig; sign: Signer }

/** Signs nothing: an answer to an unknown key isn't signed. */
const nobody: TsigKey = { name: '', secret: Buffer.alloc(0) }

/** Null if the request was answered with an error: REFUSED without a signature, NOTAUTH with an invalid one. */
export async function authenticate<K extends TsigKey>(
  request: TransferRequest,
  findKey: (keyName: string) => K | null,
  nowSeconds: () => number,
): Promise<Authenticated<K> | null> {
  const { message, query, tcp } = request
  const refuse = async (rcode: number) => {
    await request.refuse(refusal(message, query, rcode))
    return null
  }
  const tsig = readTsig(message)
  if (tsig === null) return refuse(rcodes.REFUSED)
  if (tsig === 'malformed') return refuse(rcodes.FORMERR)
  const key = findKey(tsig.keyName)
  const now = nowSeconds()
  const verdict = key ? verify(message, tsig, { key, nowSeconds: now }) : tsigErrors.BADKEY
  if (verdict === 'malformed') return refuse(rcodes.FORMERR)
  if (key && verdict === tsigErrors.NONE) return { key, tsig, sign: createSigner(key, tsig.mac, nowSeconds) }
  const plain = refusal(message, query, rcodes.NOTAUTH)
  const answer = signError(plain, tsig, verdict, { key: key ?? nobody, nowSeconds: now })
  // Names are sent uncompressed, but an answer to a forged address must not be larger than the request.
  const swollen = !tcp && verdict !== tsigErrors.BADTIME && answer.length > message.length
  await request.refuse(swollen ? plain : answer)
  return null
}
