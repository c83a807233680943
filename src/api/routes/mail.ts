// Outside /api: the unsubscribe link of an email. GET only shows a button, because email scanners follow links.
import { createHash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Html, html } from '../../platform/http/html.ts'
import { mailKinds, muteMails, verifyUnsubscribeLink } from '../../services/mail/index.ts'
import type { Deps } from '../http/deps.ts'
import { requireHttps, shedLoad } from '../http/requests/transport.ts'
import { boundOpenPerAddress } from '../http/shares/shares.ts'

// Callers have no token, so one address can't use up the limit.
const maxInFlight = 50
const maxOpenPerAddress = 10
// `List-Unsubscribe=One-Click`, as a form of either type.
const bodyLimit = 4096

const style = html`body{font:16px/1.6 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem;color-scheme:light dark}`
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style.text).digest('base64')}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

function sendPage(reply: FastifyReply, status: number, body: Html): FastifyReply {
  const page = html`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Mails · Berth</title><style>${style}</style></head><body>${body}</body></html>
`
  return reply.code(status).type('text/html; charset=utf-8').send(page.text)
}

// The same page for every error, so that nobody learns who has an account.
const notValid = html`<h1>This link is not valid</h1><p>Open it as it stands in the mail, or <a href="/me">change which mails you get</a> after you signed in.</p>`

const Link = Type.Object({
  user: Type.String({ maxLength: 100, default: '' }),
  kind: Type.String({ maxLength: 100, default: '' }),
  signature: Type.String({ maxLength: 100, default: '' }),
})

export const mailRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, vault, config } = deps
  shedLoad(app, Math.min(config.maxInFlight, maxInFlight))
  boundOpenPerAddress(app, maxOpenPerAddress, maxInFlight)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    reply.header('content-security-policy', policy)
    reply.header('referrer-policy', 'no-referrer')
    requireHttps(request)
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit }, (_request, _body, done) => done(null))
  const schema = { hide: true, querystring: Link }

  app.get('/mail/unsubscribe', { schema }, (request, reply) => {
    const kind = verifyUnsubscribeLink(vault, request.query)
    if (!kind) return sendPage(reply, 404, notValid)
    const body = html`<h1>No more of these mails?</h1><p>${mailKinds[kind].title}</p>
<form method="post"><button name="List-Unsubscribe" value="One-Click">Stop these mails</button></form>`
    return sendPage(reply, 200, body)
  })

  const preParsing = async (request: FastifyRequest, reply: FastifyReply) => {
    // Before the body is read, and so before the query gets its defaults.
    const link = Value.Default(Link, request.query)
    if (!Value.Check(Link, link) || !verifyUnsubscribeLink(vault, link)) return void sendPage(reply, 404, notValid)
  }
  app.post('/mail/unsubscribe', { schema, bodyLimit, preParsing }, async (request, reply) => {
    const kind = verifyUnsubscribeLink(vault, request.query)
    if (!kind) return sendPage(reply, 404, notValid)
    await muteMails(db, request.query.user, kind)
    const body = html`<h1>You get no more of these mails</h1><p>${mailKinds[kind].title}</p>
<p><a href="/me">Change which mails you get</a></p>`
    return sendPage(reply, 200, body)
  })
}
