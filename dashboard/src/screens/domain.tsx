// A domain: how to set it up, its certificate, and what its visitors see.
import {
  Act,
  Countdown,
  call,
  DeletePanel,
  domainState,
  Facts,
  go,
  may,
  Panel,
  type Params,
  State,
  Time,
  Top,
  toast,
  useDialog,
  useTitle,
} from '../kit/index.ts'
import { Move, Redirect } from './domain-changes.tsx'
import { type Domain, isOurs, type SetupStep, setupSteps, useDomain, zonePath } from './domain-data.ts'
import { Proof } from './domain-proof.tsx'
import { Resource } from './resource.tsx'

export default function DomainScreen({ params }: { params: Params }) {
  const name = params.name!
  const query = useDomain(name)
  useTitle(name)
  return (
    <Resource of={query} title={name} trail={<a href="/domains">Domains</a>}>
      {(domain) => <Shown of={domain} refresh={query.refetch} />}
    </Resource>
  )
}

function Shown({ of, refresh }: { of: Domain; refresh(): void }) {
  const [tone, word] = domainState(of)
  const check = call('post', '/domains/{name}/verify', { params: { path: { name: of.name } } })
  const hasZone = !of.name.startsWith('*')
  return (
    <>
      <Top
        title={of.name}
        trail={<a href="/domains">Domains</a>}
        state={<State is={tone}>{of.verified ? word : waitingFor(of)}</State>}
      >
        {hasZone && may('dns:read') && (
          <a class="button" href={zonePath(of.name)}>
            Records
          </a>
        )}
        {may('domains:write') && (
          <Act
            call={check}
            text="Check now"
            {...(!of.verified && { kind: 'primary' })}
            done={() => {
              toast('Checking the DNS now.')
              refresh()
            }}
          />
        )}
        {of.verified && (
          <a
            class="button"
            href={`${of.ssl === 'ACTIVE' ? 'https' : 'http'}://${of.name.replace(/^\*\./, 'www.')}`}
            target="_blank"
            rel="noreferrer"
          >
            Open
          </a>
        )}
      </Top>
      {of.takedown && (
        <Panel title="Taken down by the operator" pad>
          <p>{of.takedown.reason ?? 'The operator gave no reason.'}</p>
        </Panel>
      )}
      <Setup of={of} />
      {of.verified && of.verification.reason === null ? null : <Proof of={of} />}
      {!of.verified && hasZone && <BeforeYouSwitch name={of.name} />}
      <CertificatePanel of={of} />
      <Visitors of={of} />
      {of.verified && of.verification.reason === null && <Proof of={of} />}
      {may('domains:write') && <Danger of={of} />}
    </>
  )
}

function waitingFor(of: Domain): string {
  if (of.verification.nextCheckAt === null) return 'No more checks'
  return isOurs(of) ? 'Not verified' : 'Waiting for your nameservers'
}

function Setup({ of }: { of: Domain }) {
  return (
    <ol class="line" aria-label="Setup of the domain">
      {setupSteps(of).map((step) => (
        <li key={step.name} class={step.is} aria-current={step.is === 'now' ? 'step' : undefined}>
          <b>{step.name}</b>
          <span class="soft">
            <StepText of={of} step={step} />
          </span>
        </li>
      ))}
    </ol>
  )
}

function StepText({ of, step: { name, is, at } }: { of: Domain; step: SetupStep }) {
  const { nextCheckAt, method } = of.verification
  if (name === 'Certificate' && is === 'now')
    return <>{of.certificate?.lastError ?? 'being issued, usually within seconds'}</>
  if (name === 'Certificate' && is === 'failed')
    return of.certificate?.nextAttemptAt ? (
      <>
        failed, retry in <Countdown to={of.certificate.nextAttemptAt} />
      </>
    ) : (
      <>failed</>
    )
  if (name === 'Certificate' && is === 'done' && of.certificate?.notAfter)
    return (
      <>
        until <Time at={of.certificate.notAfter} form="date" />
      </>
    )
  if (name === 'Certificate') return <>shortly after</>
  if (is === 'now')
    return nextCheckAt ? (
      <>
        next check in <Countdown to={nextCheckAt} />
      </>
    ) : (
      <>no more checks</>
    )
  if (name === 'DNS elsewhere')
    return <>{method === 'operator' ? 'assigned by the operator' : 'verified by a TXT record'}</>
  if (at) return <Time at={at} form="full" />
  return <>{is === 'done' ? 'to our nameservers' : '–'}</>
}

function BeforeYouSwitch({ name }: { name: string }) {
  return (
    <Panel title="Before you switch" pad>
      <p>
        We don't copy your existing records. Export your current zone and{' '}
        <a href={`${zonePath(name)}?paste=1`}>paste it here</a> first, so that email keeps working when the nameservers
        change.
      </p>
    </Panel>
  )
}

function CertificatePanel({ of }: { of: Domain }) {
  const { certificate, ssl } = of
  const self = call('get', '/domains/{name}', { params: { path: { name: of.name } } })
  const tones = { ACTIVE: 'ready', ERROR: 'bad', EXPIRED: 'bad', PENDING: 'off', ISSUING: 'busy' } as const
  const words = { ACTIVE: 'Active', ERROR: 'Failed', EXPIRED: 'Expired', PENDING: 'Pending', ISSUING: 'Issuing' }
  const rows: [string, preact.ComponentChildren][] = []
  if (certificate?.lastError) rows.push(['Last attempt', <span class="bad">{certificate.lastError}</span>])
  if (certificate?.issuer) rows.push(['Issued by', certificate.issuer])
  if (certificate && certificate.sans.length > 0)
    rows.push(['Names', certificate.sans.map((name) => <code class="listed">{name}</code>)])
  if (certificate?.notBefore && certificate.notAfter)
    rows.push([
      'Valid',
      <>
        <Time at={certificate.notBefore} form="date" /> to <Time at={certificate.notAfter} form="full" />
      </>,
    ])
  if (certificate?.serial) rows.push(['Serial', <code>{certificate.serial}</code>])
  if (certificate?.nextAttemptAt)
    rows.push([certificate.issuer ? 'Renews by' : 'Next retry', <Time at={certificate.nextAttemptAt} form="full" />])
  return (
    <Panel title="Certificate" state={<State is={tones[ssl]}>{words[ssl]}</State>} call={self} pad>
      {rows.length > 0 ? (
        <Facts rows={rows} />
      ) : (
        <p class="soft">
          {of.verified ? 'We are issuing it.' : 'We issue it once the domain is verified, and renew it automatically.'}
        </p>
      )}
    </Panel>
  )
}

function Visitors({ of }: { of: Domain }) {
  const [moving, redirecting] = [useDialog(), useDialog()]
  return (
    <Panel
      title="Where visitors go"
      actions={
        may('domains:write') && (
          <>
            <button type="button" class="quiet" onClick={redirecting.open}>
              Redirect
            </button>
            <button type="button" class="quiet" onClick={moving.open}>
              Move to another project
            </button>
          </>
        )
      }
      call={call('get', '/domains/{name}', { params: { path: { name: of.name } } })}
      pad
    >
      {of.redirectTo ? (
        <p>
          Redirects to <a href={`/domains/${encodeURIComponent(of.redirectTo)}`}>{of.redirectTo}</a> with{' '}
          {of.redirectStatus}; path and query are kept. The domain belongs to{' '}
          <a href={`/projects/${of.project}`}>{of.project}</a>.
        </p>
      ) : (
        <p>
          They see the production deployment of <a href={`/projects/${of.project}`}>{of.project}</a>
          {of.verified ? '.' : ' once the domain is verified.'}
        </p>
      )}
      <Move of={moving} domain={of} />
      <Redirect of={redirecting} domain={of} />
    </Panel>
  )
}

function Danger({ of }: { of: Domain }) {
  return (
    <DeletePanel
      title="Delete the domain"
      hint="Also deletes its records and certificate. You keep the name at your registrar."
      typed={of.name}
      call={call('delete', '/domains/{name}', { params: { path: { name: of.name } } })}
      done={() => {
        toast(`Deleted ${of.name}.`)
        go('/domains')
      }}
    >
      <p>
        <b>Deleted:</b> all DNS records, including those for email, and the certificate. If it uses our nameservers,
        {of.name} stops working at once.
      </p>
      <p class="soft">
        Download the zone first: <a href={zonePath(of.name)}>Records</a>.{' '}
        {of.verified && 'The name stays reserved for this account for 7 days. '}
        If you add it again, it may get other nameservers.
      </p>
    </DeletePanel>
  )
}
