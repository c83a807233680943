// The public interface of the certificate engine.
export { createIssuer } from './issuer.ts'
