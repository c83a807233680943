// The entry of the engine that gets and renews certificates.
export { createIssuer } from './issuer.ts'
