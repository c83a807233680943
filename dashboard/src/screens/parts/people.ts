// Members, invitations and roles: the calls that several screens share.
import { type Call, callPath, type Role } from '../../kit/index.ts'

export type Member = {
  id: string
  userId: string
  email: string
  name: string
  role: Role
  projects: string[] | null
  createdAt: string
}

type Page<K extends string, T> = { [key in K]: T[] } & { nextCursor: string | null; hasMore: boolean }

export const listMembers = () =>
  callPath('get', '/members', { params: { query: { limit: 100 } } }) as Call<Page<'members', Member>>
