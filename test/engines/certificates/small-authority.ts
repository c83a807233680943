// An ACME server that says what a test wants to hear: limits with Retry-After, and renewal windows, which Pebble 2.4 lacks.
import { webcrypto } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as x509 from '@peculiar/x509'
import { selfSigned } from './pebble.ts'

type Answer = { status: number; body: unknown; headers?: Record<string, string> }

export type SmallAuthority = {
  directoryUrl: string
  caFile: string
  /** Payloads of the orders that were asked for. */
  orders: Record<string, unknown>[]
  /** Paths of the renewal windows that were asked for. */
  renewalInfos: string[]
  /** Given, the answer to every new order. */
  refusal: Answer | null
  /** Given, what happens before a path is answered. */
  meanwhile: ((path: string) => Promise<unknown>) | null
  /** Given, the certificate in place of the one that was signed. */
  otherChain: string | null
  window: { start: Date; end: Date } | null
  stop(): Promise<void>
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

export async function startSmallAuthority(): Promise<SmallAuthority> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-authority-'))
  const listener = await selfSigned()
  const caFile = join(directory, 'listener.pem')
  await writeFile(caFile, listener.certificate)
  const keys = await webcrypto.subtle.generateKey(algorithm, false, ['sign', 'verify'])
  let chain = ''
  let status = 'ready'

  async function sign(csr: string): Promise<void> {
    const request = new x509.Pkcs10CertificateRequest(Buffer.from(csr, 'base64url'))
    const leaf = await x509.X509CertificateGenerator.create({
      subject: '',
      issuer: 'CN=Small Authority',
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + 90 * 86_400_000),
      signingAlgorithm: algorithm,
      publicKey: request.publicKey,
      signingKey: keys.privateKey,
      extensions: [
        request.extensions.find((extension) => extension instanceof x509.SubjectAlternativeNameExtension)!,
        await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
      ],
    })
    chain = `${leaf.toString('pem')}\n`
    status = 'valid'
  }

  async function answer(path: string, payload: Record<string, unknown>): Promise<Answer> {
    await authority.meanwhile?.(path)
    const base = authority.directoryUrl.replace('/dir', '')
    const order = () => ({
      status,
      authorizations: [],
      finalize: `${base}/finalize`,
      certificate: `${base}/certificate`,
    })
    if (path === '/dir') {
      const renewalInfo = authority.window ? { renewalInfo: `${base}/renewal` } : {}
      const [newNonce, newAccount, newOrder] = ['nonce', 'account', 'order'].map((name) => `${base}/${name}`)
      return { status: 200, body: { newNonce, newAccount, newOrder, ...renewalInfo } }
    }
    if (path === '/account') return { status: 201, body: {}, headers: { location: `${base}/account/1` } }
    if (path === '/order') {
      authority.orders.push(payload)
      if (authority.refusal) return authority.refusal
      status = 'ready'
      return { status: 201, body: order(), headers: { location: `${base}/order/1` } }
    }
    if (path === '/finalize') await sign(String(payload.csr))
    if (path === '/certificate') return { status: 200, body: authority.otherChain ?? chain }
    if (path.startsWith('/renewal/')) {
      authority.renewalInfos.push(path.slice('/renewal/'.length))
      return { status: 200, body: { suggestedWindow: authority.window }, headers: { 'retry-after': '7200' } }
    }
    return { status: 200, body: order() }
  }

  const server = createServer({ cert: listener.certificate, key: listener.key }, async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const { payload = '' } = text ? JSON.parse(text) : {}
    const { status, body, headers } = await answer(
      request.url!,
      payload ? JSON.parse(Buffer.from(payload, 'base64url').toString()) : {},
    )
    const type = typeof body === 'string' ? 'application/pem-certificate-chain' : 'application/json'
    response.writeHead(status, { 'content-type': type, 'replay-nonce': 'once', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const authority: SmallAuthority = {
    directoryUrl: `https://127.0.0.1:${(server.address() as AddressInfo).port}/dir`,
    caFile,
    orders: [],
    renewalInfos: [],
    refusal: null,
    meanwhile: null,
    otherChain: null,
    window: null,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await rm(directory, { recursive: true, force: true })
    },
  }
  return authority
}
