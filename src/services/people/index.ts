// Door of people: how they sign in, and which accounts they are members of.

export {
  answerInvitation,
  createInvitation,
  deleteInvitation,
  findInvitation,
  invitationsTo,
  listInvitations,
} from './invitations.ts'
export { createLink, hasNoMember, lookAtCode, setupUrl, takeCode } from './links.ts'
export { changeMember, findMember, leaveAccount, listMembers, projectsOf, removeMember } from './members.ts'
export { withProjectNames } from './memberships.ts'
export { findPerson, listPeople, NotProved, provideLink } from './provision.ts'
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
export { proofCode, proveAddress } from './sign-in/address-proofs.ts'
export { listMemberships, mintToken } from './sign-in/console-tokens.ts'
export { answerDevice, beginDevice, deviceSeconds, lookAtDevice, takeDeviceToken } from './sign-in/devices.ts'
export { newKnownBrowser } from './sign-in/known-browser.ts'
export { personOf } from './sign-in/oidc.ts'
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
export { checkPassword, openByPassword, passwordMark, setPassword } from './sign-in/passwords.ts'
export { countRecoveryCodes } from './sign-in/recovery-codes.ts'
export { beginStep, stepSeconds, takeStep } from './sign-in/steps.ts'
export { confirmTotp, finishByCode, removeTotp, renewRecoveryCodes, setUpTotp } from './sign-in/totp.ts'
export { forgetEndedSignIns } from './sweep.ts'
export { changeUser, normalEmail, viewUser } from './users.ts'
