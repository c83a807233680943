// Door of people: how they sign in, and which accounts they are members of.
export { proofCode, proveAddress } from './address-proofs.ts'
export { listMemberships, mintToken } from './console-tokens.ts'
export { answerDevice, beginDevice, deviceSeconds, lookAtDevice, takeDeviceToken } from './devices.ts'
export {
  answerInvitation,
  createInvitation,
  deleteInvitation,
  findInvitation,
  invitationsTo,
  listInvitations,
} from './invitations.ts'
export { newKnownBrowser } from './known-browser.ts'
export { createLink, hasNoMember, lookAtCode, setupUrl, takeCode } from './links.ts'
export { changeMember, findMember, leaveAccount, listMembers, projectsOf, removeMember } from './members.ts'
export { withProjectNames } from './memberships.ts'
export { personOf } from './oidc.ts'
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
} from './passkeys.ts'
export { checkPassword, openByPassword, passwordMark, setPassword } from './passwords.ts'
export { findPerson, listPeople, NotProved, provideLink } from './provision.ts'
export { countRecoveryCodes } from './recovery-codes.ts'
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
export { beginStep, stepSeconds, takeStep } from './steps.ts'
export { forgetEndedSignIns } from './sweep.ts'
export { confirmTotp, finishByCode, removeTotp, renewRecoveryCodes, setUpTotp } from './totp.ts'
export { changeUser, normalEmail, viewUser } from './users.ts'
