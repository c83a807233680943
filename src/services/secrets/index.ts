// Door of stored secrets: which keys sealed them, and resealing.
export { type ColumnRotation, countSealed, isComplete, rotateSecrets } from './rotation.ts'
export { admitKey, secretsReadiness, WrongKey } from './sealing-keys.ts'
