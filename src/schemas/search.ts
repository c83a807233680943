// Search across the resources of an account.
import { Type } from '@sinclair/typebox'
import { Body, Choice, Named } from './common.ts'
import { Deployment } from './deployments.ts'
import { Domain } from './domains.ts'
import { Project } from './projects.ts'
import { Ticket } from './tickets.ts'

export const searchedKinds = ['projects', 'domains', 'deployments', 'tickets'] as const

export const SearchResults = Type.Object(
  {
    projects: Type.Array(Named(Project), { description: 'By name or repository, or their id' }),
    domains: Type.Array(Named(Domain), { description: 'By a part of the name' }),
    deployments: Type.Array(Named(Deployment), { description: 'By commit, ref or address, or their id' }),
    tickets: Type.Array(Named(Ticket), { description: 'By words of the subject, or their id' }),
    searched: Type.Array(Choice(searchedKinds), { description: 'What the token may read; the other lists are empty' }),
  },
  { $id: 'SearchResults', description: 'The first that were found of each kind' },
)

export const SearchQuery = Body({
  q: Type.String({
    minLength: 2,
    maxLength: 200,
    pattern: '\\S',
    description: 'must be 2 to 200 characters, not only spaces',
  }),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 20, default: 5, description: 'How many of each kind at most' }),
  ),
})
