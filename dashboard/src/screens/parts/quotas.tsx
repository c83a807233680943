// The limits of an account: their names, and how much of each is used.
import { bytes, num, Used } from '../../kit/index.ts'

/** In display order. */
export const quotaTitles: Record<string, string> = {
  buildMinutesPerMonth: 'Build minutes this month',
  storedBytes: 'Deployment storage',
  projects: 'Projects',
  serverInstances: 'Server instances',
  buildsAtOnce: 'Concurrent builds',
  buildsQueued: 'Queued builds',
  domains: 'Domains',
  claimsPerMonth: 'New domain names this month',
  recordBytes: 'DNS records, all zones',
  recordsPerZone: 'Records per zone',
  recordsPerSet: 'Records per name and type',
  bytesPerSet: 'Bytes per name and type',
  dnsKeys: 'DNS keys',
  members: 'Members and invitations',
  tokens: 'Tokens',
  revokedTokens: 'Revoked parents of active tokens',
  webhooks: 'Webhooks',
  deployHooks: 'Deploy hooks per project',
  variables: 'Variables per project',
  openTickets: 'Open tickets',
  messagesPerMonth: 'Support messages this month',
  uploadBytes: 'Uploads',
  uploadFileBytes: 'Largest uploaded file',
  sourceFiles: 'Files per upload',
  sourceBytes: 'Bytes per upload',
  streams: 'Open streams',
  waits: 'Waiting requests',
}

export const formatOf = (name: string) => (/bytes/i.test(name) ? bytes : num)

/** Null: hidden from members limited to projects. */
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
