// Quotas of an account: what they are called, and how much is used of each.
import { bytes, num, Used } from '../../kit/index.ts'

/** In the order in which one looks for them; those that are about bytes are shown so. */
export const quotaTitles: Record<string, string> = {
  buildMinutesPerMonth: 'Build minutes this month',
  storedBytes: 'Storage of deployments',
  projects: 'Projects',
  serverInstances: 'Server instances',
  buildsAtOnce: 'Builds at once',
  buildsQueued: 'Builds that wait',
  domains: 'Domains',
  claimsPerMonth: 'New names this month',
  recordBytes: 'DNS records, all zones',
  recordsPerZone: 'Records of one zone',
  recordsPerSet: 'Records of one name and type',
  bytesPerSet: 'Bytes of one name and type',
  dnsKeys: 'Keys of zones',
  members: 'Members and invitations',
  tokens: 'Tokens',
  revokedTokens: 'Revoked tokens that live ones came from',
  webhooks: 'Webhooks',
  deployHooks: 'Deploy hooks of one project',
  variables: 'Variables of one project',
  openTickets: 'Open tickets',
  messagesPerMonth: 'Messages to support this month',
  uploadBytes: 'Uploads',
  uploadFileBytes: 'Largest uploaded file',
  sourceFiles: 'Files of one upload',
  sourceBytes: 'Bytes of one upload',
  streams: 'Streams open now',
  waits: 'Waiting requests now',
}

export const formatOf = (name: string) => (/bytes/i.test(name) ? bytes : num)

/** Null: not told to whoever is narrowed to projects. */
type Numbers = Readonly<Record<string, number | null>>

export function Quotas({ limits, usage }: { limits: Numbers; usage: Numbers }) {
  const shown = Object.keys(quotaTitles).filter(
    (name) => typeof limits[name] === 'number' && typeof usage[name] === 'number',
  )
  return (
    <dl class="quotas">
      {shown.map((name) => (
        <div key={name}>
          <dt>{quotaTitles[name]}</dt>
          <dd>
            <Used value={usage[name]!} max={limits[name]!} label={quotaTitles[name]!} format={formatOf(name)} />
          </dd>
        </div>
      ))}
    </dl>
  )
}
