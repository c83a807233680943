// Accepts sign-in requests only from the console's own pages. Customers' sites may be same-site with the console, so a
// SameSite cookie is no protection against them.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Fault } from '../../platform/errors.ts'

const readMethods = new Set(['GET', 'HEAD'])

declare module 'fastify' {
  interface FastifyContextConfig {
    /** For programs, not pages: the route reads no cookie. */
    anyOrigin?: boolean
  }
}

/** Every request except GET must come from a page of the same origin and say so. Routes for programs are exempt. */
export function requireSameOrigin(app: FastifyInstance, baseUrl: string): void {
  const { origin } = new URL(baseUrl)
  app.addHook('onRequest', (request, _reply, done) => {
    if (readMethods.has(request.method) || request.routeOptions.config.anyOrigin) return done()
    const { 'sec-fetch-site': site, origin: sent } = request.headers
    // Sec-Fetch-Site counts first; every browser since 2023 sends it.
    const isOwn = site === undefined ? sent === origin : site === 'same-origin'
    done(isOwn ? undefined : new Fault('cross_origin'))
  })
}

/** For a GET that reads the cookie. `none` means that the person typed the URL. */
export function refuseOtherSites(request: FastifyRequest): void {
  const site = request.headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw new Fault('cross_origin')
}

/** Browsers store secure cookies for localhost, but for no other host without TLS. */
export function refuseInsecureOrigin(app: FastifyInstance, baseUrl: string): void {
  const { protocol, hostname } = new URL(baseUrl)
  const isLocal = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
  if (protocol === 'https:' || isLocal) return
  app.addHook('onRequest', (_request, _reply, done) => done(new Fault('insecure_origin')))
}
