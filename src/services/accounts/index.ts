// Door of accounts: their keys, what they used, and how their rights are shared.
export { type AccountView, createAccount, findAccount, listAccounts, openAccount, viewAccount } from './accounts.ts'
export { noteStoredBytes, readMonths } from './month-usage.ts'
export { changeLimits, countMembers, readAccount, readLimits } from './usage.ts'
