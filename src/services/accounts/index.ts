// Public entry point of accounts: creation, limits and usage.
export { type AccountView, createAccount, findAccount, listAccounts, openAccount, viewAccount } from './accounts.ts'
export { readMonths, recordStoredBytes } from './month-usage.ts'
export { changeLimits, countMembers, readAccount, readLimits } from './usage.ts'
