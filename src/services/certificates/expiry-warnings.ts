// When to warn the owner of a certificate that fails to renew: a few times as its expiry approaches.
import type { Certificate, Domain } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import { idAt } from '../../platform/ids.ts'

// Remaining lifetime at each warning: 15, 7.5 and 3 of 90 days. Renewal starts at a third, and most failures resolve
// before the first warning.
const shares = [1 / 6, 1 / 12, 1 / 30]

type Lifetime = Pick<Certificate, 'notBefore' | 'notAfter'>

/** How many warnings are due at that time. */
export function warningsAt({ notBefore, notAfter }: Lifetime, now: Date): number {
  const lifeMs = notAfter.getTime() - notBefore.getTime()
  const leftMs = notAfter.getTime() - now.getTime()
  return shares.filter((share) => leftMs < share * lifeMs).length
}

/** Whether a failed renewal gets an event: it is the first one since a warning became due. */
export async function isWarningDue(
  db: Db,
  { accountId, name }: Pick<Domain, 'accountId' | 'name'>,
  certificate: Lifetime,
  now = new Date(),
): Promise<boolean> {
  const due = warningsAt(certificate, now)
  if (due === 0) return false
  const last = await db.event.findFirst({
    where: { accountId, subject: name, type: 'domain.ssl.failing', id: { gte: idAt('evt', certificate.notBefore) } },
    orderBy: { id: 'desc' },
    select: { createdAt: true },
  })
  return last === null || warningsAt(certificate, last.createdAt) < due
}
