// The roles of members: each is a name for a set of scopes.

import { roleNames } from '../../schemas/people.ts'
import { tokenScopes } from '../../schemas/tokens.ts'
import type { Scope } from '../identity/index.ts'
export type Role = (typeof roleNames)[number]

export type RoleRow = {
  description: string
  scopes: readonly Scope[]
  /** Whether a member with this role can be limited to projects. */
  byProject: boolean
}

export const roles: Record<Role, RoleRow> = {
  owner: { description: 'Everything, and who else is an owner', scopes: ['*'], byProject: false },
  admin: { description: 'Everything but making, changing and removing owners', scopes: ['*'], byProject: false },
  developer: {
    description: 'Builds, deploys and serves; reads events and tokens',
    scopes: [
      'projects:write',
      'deployments:write',
      'domains:write',
      'dns:write',
      'tickets:write',
      'webhooks:write',
      'events:read',
      'tokens:read',
    ],
    byProject: true,
  },
  viewer: {
    description: 'Reads everything, changes nothing',
    scopes: tokenScopes.filter((scope) => scope.endsWith(':read')),
    byProject: true,
  },
}

/** The scopes of a membership's token. */
export function scopesOf(role: Role, { operator }: { operator: boolean }): Scope[] {
  return [...roles[role].scopes, ...(operator ? (['operator'] as const) : [])]
}

export function listRoles() {
  return roleNames.map((name) => ({ name, ...roles[name], scopes: [...roles[name].scopes] }))
}
