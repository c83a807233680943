// Errors of accounts and their members.

export const accountErrors = {
  account_suspended: {
    title: 'The account is suspended',
    cause: 'The operator of this platform suspended the account.',
    cure: 'Contact the operator.',
  },
  quota_exceeded: {
    title: 'The account has reached a limit',
    cause: 'The account has reached the limit named in `limit`; `used` and `max` give the numbers.',
    cure: 'Delete what you don’t need, or ask the operator to raise `limit`.',
  },
} as const

export const memberErrors = {
  member_exists: {
    title: 'The person is already a member',
    cause: 'The account already has a member with this email.',
    cure: 'Change the role of that member instead.',
  },
  last_owner: {
    title: 'The account needs an owner',
    cause: 'The last owner of an account cannot leave it or take a lesser role.',
    cure: 'Make another member an owner first.',
  },
  owner_required: {
    title: 'Only an owner can do that',
    cause: 'Only an owner can add, change or remove an owner.',
    cure: 'Ask an owner.',
  },
  account_exists: {
    title: 'The account already exists',
    cause: 'The platform already has an account with this name.',
    cure: 'Choose another name.',
  },
} as const
