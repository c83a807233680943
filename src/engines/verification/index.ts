// The public interface of the engine that checks who owns a domain.
export { createVerification } from './verification.ts'
