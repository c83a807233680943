// The operator's screens: accounts, nodes, jobs, takedowns, and the ticket queue.

import { useEffect } from 'preact/hooks'
import { currentUrl, go, may, type Params, ProblemView, Tabs, Top } from '../kit/index.ts'
import { AccountDetails, Accounts } from './parts/operator-accounts.tsx'
import { Jobs } from './parts/operator-jobs.tsx'
import { Nodes } from './parts/operator-nodes.tsx'
import { Takedowns } from './parts/operator-takedowns.tsx'
import { TicketQueue } from './parts/operator-tickets.tsx'
import { Thread } from './parts/tickets.tsx'

const sections = {
  tickets: { text: 'Tickets', of: TicketQueue },
  accounts: { text: 'Accounts', of: Accounts },
  nodes: { text: 'Nodes', of: Nodes },
  jobs: { text: 'Jobs', of: Jobs },
  takedowns: { text: 'Takedowns', of: Takedowns },
}

export default function Operator({ params: { section, id } }: { params: Params }) {
  const found = sections[section as keyof typeof sections]
  useEffect(() => {
    if (!found) go('/operator/tickets', { replace: true })
  }, [currentUrl.value.path])
  if (!may('operator')) {
    return (
      <>
        <Top title="Operator" />
        <ProblemView error={new Error('Only operators of this installation can see this page.')} />
      </>
    )
  }
  if (section === 'tickets' && id) return <Thread id={id} side="support" may />
  if (section === 'accounts' && id) return <AccountDetails id={id} />
  return (
    <>
      <Top title="Operator" />
      <Tabs
        label="Operator"
        items={Object.entries(sections).map(([name, { text }]) => ({ href: `/operator/${name}`, text }))}
      />
      {found && <found.of />}
    </>
  )
}
