// The proof of ownership: what is expected, and beside it what the last look has found.
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
        verified ? 'Proof of ownership' : byTxt ? 'Add this record where your DNS is' : 'Set this at your registrar'
      }
      state={
        verified ? (
          <State is={verification.reason ? 'busy' : 'ready'}>
            {verification.reason ? 'Not found lately' : 'Verified'}
          </State>
        ) : null
      }
      note={<NextLook of={of} />}
      call={call('get', '/domains/{name}', { params: { path: { name: of.name } } })}
      pad
    >
      <div class="stack">
        {verification.reason && <p role="status">{verification.reason}</p>}
        {verification.method === 'operator' && <p>The operator of the platform assigned the domain to this account.</p>}
        <div class="vs">{byTxt ? <TxtProof of={of} /> : <NameserverProof of={of} />}</div>
        {!verified && (
          <p class="soft">
            {byTxt ? (
              <>
                Your DNS stays where it is; point an A, AAAA, ALIAS or CNAME record at the project yourself.{' '}
                <a href={`${where}?proof=nameservers`}>Use our nameservers instead</a>
              </>
            ) : (
              <>
                Replace all nameservers by these two. Most registrars show the change within minutes. Keep your DNS
                elsewhere? <a href={`${where}?proof=txt`}>Prove it with a TXT record instead</a>
              </>
            )}
          </p>
        )}
      </div>
    </Panel>
  )
}

function NextLook({ of: { verification } }: { of: Domain }) {
  return verification.nextCheckAt ? (
    <>
      next look in <Countdown to={verification.nextCheckAt} />
    </>
  ) : (
    <>not looked for any more</>
  )
}

/** Who said so, and when. */
function SeenAt({ of: { verification }, asked }: { of: Domain; asked: string[] }) {
  if (!verification.checkedAt) return <>Not looked yet</>
  const [first, ...others] = asked
  return (
    <>
      {first ? (
        <span title={asked.join(', ')}>
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
        <h3>We expect these two nameservers, and no others</h3>
        {of.nameservers.map((name) => (
          <CopyLine key={name} text={name} />
        ))}
      </div>
      <div>
        <h3>
          <SeenAt of={of} asked={observed.asked} />
        </h3>
        {observed.nameservers.map((name) => (
          <div key={name} class="copy">
            <code>{name}</code>
            {of.nameservers.includes(name) ? <State is="ready">ours</State> : <State is="bad">not ours</State>}
          </div>
        ))}
        {checkedAt && observed.nameservers.length === 0 && <p class="soft">No nameservers were found.</p>}
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
        <CopyLine text={txt.name} what="name of the record" />
        <div class="copy">
          <code>{txt.value}</code>
          <Copy text={txt.value} what="value of the record" />
        </div>
      </div>
      <div>
        <h3>
          <SeenAt of={of} asked={observed.nameservers} />
        </h3>
        {observed.txt.map((value) => (
          <div key={value} class="copy">
            <code>{value}</code>
            {value === txt.value ? <State is="ready">right</State> : <State is="bad">another value</State>}
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
