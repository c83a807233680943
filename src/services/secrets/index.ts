// Public entry point of stored secrets: the keys that seal them, and their rotation.
export { type ColumnRotation, countSealed, isComplete, rotateSecrets } from './rotation.ts'
export { admitKey, secretsReadiness, WrongKey } from './sealing-keys.ts'
