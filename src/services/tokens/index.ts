// Door of tokens: lineage, rights and revocation.
export { createTokenDirectory, type KnownToken, type TokenDirectory } from './directory.ts'
export { grants, lockCaller, requireScopes, withRights } from './lineage.ts'
export { changeToken, checkTokenChange, narrowDescendants } from './narrowing.ts'
export { endLine, revokeOwnToken, revokeToken } from './revocation.ts'
export { rotateToken } from './rotation.ts'
export { selectAncestors, withdrawInvitations } from './statements.ts'
export { orNull, readPatterns, readTypes } from './token-zones.ts'
export {
  checkToken,
  createToken,
  findOwnToken,
  findToken,
  forgetEndedTokens,
  insertToken,
  listTokens,
  liveTokens,
  resolveProjects,
  type TokenView,
  versionOf,
  viewToken,
  withNames,
} from './tokens.ts'
