// Takes what concerns a sign-in from the console's own pages alone. Customers' sites may be same-site with the console,
// so that SameSite of the cookie protects nothing from them.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Fault } from '../../platform/errors.ts'

const reading = new Set(['GET', 'HEAD'])

declare module 'fastify' {
  interface FastifyContextConfig {
    /** For programs, and not for pages: it reads no cookie. */
    anyOrigin?: boolean
  }
}

/** Every request but a GET must come from a page of the same origin, and say so; but for routes of programs. */
export function requireSameOrigin(app: FastifyInstance, baseUrl: string): void {
  const { origin } = new URL(baseUrl)
  app.addHook('onRequest', (request, _reply, done) => {
    if (reading.has(request.method) || request.routeOptions.config.anyOrigin) return done()
    const { 'sec-fetch-site': site, origin: sent } = request.headers
    // What the browser says of the site counts first: every one says it that is younger than 2023.
    const isOwn = site === undefined ? sent === origin : site === 'same-origin'
    done(isOwn ? undefined : new Fault('cross_origin'))
  })
}

/** For a GET that reads the cookie: `none` is an address that the person typed. */
export function refuseOtherSites(request: FastifyRequest): void {
  const site = request.headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw new Fault('cross_origin')
}

/** Browsers keep a secure cookie of localhost, but of no other address without TLS. */
export function refuseInsecureOrigin(app: FastifyInstance, baseUrl: string): void {
  const { protocol, hostname } = new URL(baseUrl)
  const isLocal = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
  if (protocol === 'https:' || isLocal) return
  app.addHook('onRequest', (_request, _reply, done) => done(new Fault('insecure_origin')))
}
