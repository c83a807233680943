// The current account with its limits and usage, for the navigation and the overview.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { call, type Schemas } from '../kit/api.ts'
import { useQuery } from '../kit/data.ts'

export const accountCall = () => call('get', '/account')
export const account = signal<Schemas['Account'] | null>(null)

/** Keeps `account` up to date; called once, by the navigation. */
export function useAccount(): void {
  const { data } = useQuery(accountCall(), {
    on: ['project.*', 'domain.created', 'domain.deleted', 'ticket.*', 'deployment.ready', 'account.*'],
  })
  useEffect(() => {
    if (data) account.value = data
  }, [data])
}
