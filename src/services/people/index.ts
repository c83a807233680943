// Public entry point of people: sign-in, memberships and invitations.

export {
  answerInvitation,
  createInvitation,
  deleteInvitation,
  findInvitation,
  listInvitations,
  listInvitationsFor,
} from './invitations.ts'
export { createLink, hasNoMember, previewCode, redeemCode, setupUrl } from './links.ts'
export { changeMember, findMember, leaveAccount, listMembers, projectsOf, removeMember } from './members.ts'
export { withProjectNames } from './memberships.ts'
export { findPerson, listPeople, provisionLink, UnverifiedEmail } from './provision.ts'
export { listRoles, type Role, roles } from './roles.ts'
export {
  endSession,
  findSession,
  listSessions,
  openSession,
  type SessionWithUser,
  type SignIn,
  viewSession,
} from './sessions.ts'
export { listMemberships, mintToken } from './sign-in/console-tokens.ts'
export {
  answerDeviceLogin,
  deviceSeconds,
  findDeviceLogin,
  redeemDeviceCode,
  startDeviceLogin,
} from './sign-in/devices.ts'
export { emailVerificationCode, verifyEmail } from './sign-in/email-verification.ts'
export { newKnownBrowser } from './sign-in/known-browser.ts'
export { findOrAdmitUser } from './sign-in/oidc.ts'
export {
  createPasskey,
  deletePasskey,
  listPasskeys,
  passkeyOptions,
  type RelyingParty,
  registrationOptions,
  relyingPartyOf,
  renamePasskey,
  signInByPasskey,
  viewPasskey,
} from './sign-in/passkeys.ts'
export { checkPassword, openPasswordSession, passwordDigest, setPassword } from './sign-in/passwords.ts'
export { countRecoveryCodes } from './sign-in/recovery-codes.ts'
export { consumeStep, createStep, stepSeconds } from './sign-in/steps.ts'
export { completeWithCode, confirmTotp, removeTotp, renewRecoveryCodes, setUpTotp } from './sign-in/totp.ts'
export { deleteExpiredSignIns } from './sweep.ts'
export { changeUser, normalEmail, viewUser } from './users.ts'
