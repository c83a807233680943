// The proof of ownership: what we expect, next to what the last check found.
import { Copy, CopyLine, Countdown, call, Panel, State, Time, useParam } from '../kit/index.ts'
import type { Domain } from './domain-data.ts'

export function Proof({ of }: { of: Domain }) {
  const [proof] = useParam('proof')
  const { verified, verification } = of
  const byTxt = proof ? proof === 'txt' : verification.method === 'txt'
  const where = `/domains/${encodeURIComponent(of.name)}`
  return (
    <Panel
      title={
        verified ? 'Proof of ownership' : byTxt ? 'Add this record at your DNS provider' : 'Set this at your registrar'
      }
      state={
        verified ? (
          <State is={verification.reason ? 'busy' : 'ready'}>
            {verification.reason ? 'No longer found' : 'Verified'}
          </State>
        ) : null
      }
      note={<NextCheck of={of} />}
      call={call('get', '/domains/{name}', { params: { path: { name: of.name } } })}
      pad
    >
      <div class="stack">
        {verification.reason && <p role="status">{verification.reason}</p>}
        {verification.method === 'operator' && <p>The operator assigned the domain to this account.</p>}
        <div class="vs">{byTxt ? <TxtProof of={of} /> : <NameserverProof of={of} />}</div>
        {!verified && (
          <p class="soft">
            {byTxt ? (
              <>
                Keep your DNS provider, and point an A, AAAA, ALIAS or CNAME record at the project.{' '}
                <a href={`${where}?proof=nameservers`}>Use our nameservers instead</a>
              </>
            ) : (
              <>
                Replace all nameservers with these two. Most registrars apply the change within minutes. Keeping your
                DNS elsewhere? <a href={`${where}?proof=txt`}>Verify with a TXT record instead</a>
              </>
            )}
          </p>
        )}
      </div>
    </Panel>
  )
}

function NextCheck({ of: { verification } }: { of: Domain }) {
  return verification.nextCheckAt ? (
    <>
      next check in <Countdown to={verification.nextCheckAt} />
    </>
  ) : (
    <>no more checks</>
  )
}

/** Which servers returned this, and when. */
function SeenAt({ of: { verification }, servers }: { of: Domain; servers: string[] }) {
  if (!verification.checkedAt) return <>Not checked yet</>
  const [first, ...others] = servers
  return (
    <>
      {first ? (
        <span title={servers.join(', ')}>
          Seen at {first}
          {others.length > 0 && ` and ${others.length} more`}
        </span>
      ) : (
        'Seen in the DNS'
      )}
      , <Time at={verification.checkedAt} form="clock" />
    </>
  )
}

function NameserverProof({ of }: { of: Domain }) {
  const { observed, checkedAt } = of.verification
  return (
    <>
      <div>
        <h3>We expect exactly these two nameservers</h3>
        {of.nameservers.map((name) => (
          <CopyLine key={name} text={name} />
        ))}
      </div>
      <div>
        <h3>
          <SeenAt of={of} servers={observed.asked} />
        </h3>
        {observed.nameservers.map((name) => (
          <div key={name} class="copy">
            <code>{name}</code>
            {of.nameservers.includes(name) ? <State is="ready">ours</State> : <State is="bad">not ours</State>}
          </div>
        ))}
        {checkedAt && observed.nameservers.length === 0 && <p class="soft">No nameservers found.</p>}
      </div>
    </>
  )
}

function TxtProof({ of }: { of: Domain }) {
  const { txt, observed, checkedAt } = of.verification
  return (
    <>
      <div>
        <h3>We expect this TXT record</h3>
        <CopyLine text={txt.name} what="record name" />
        <div class="copy">
          <code>{txt.value}</code>
          <Copy text={txt.value} what="record value" />
        </div>
      </div>
      <div>
        <h3>
          <SeenAt of={of} servers={observed.nameservers} />
        </h3>
        {observed.txt.map((value) => (
          <div key={value} class="copy">
            <code>{value}</code>
            {value === txt.value ? <State is="ready">correct</State> : <State is="bad">wrong value</State>}
          </div>
        ))}
        {checkedAt && observed.txt.length === 0 && (
          <p class="soft">
            No TXT record at <code>{txt.name}</code>.
          </p>
        )}
      </div>
    </>
  )
}
