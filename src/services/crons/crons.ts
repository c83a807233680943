// Lists the crons of a project, with their next and last runs.
import type { Static } from '@sinclair/typebox'
import type { CronRun } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import { CronRun as CronRunSchema, type Cron as CronSchema } from '../../schemas/crons.ts'
import type { Actor } from '../identity/index.ts'
import { type CronSetting, findProject, lineOfCron } from '../projects/index.ts'

export type CronView = Static<typeof CronSchema>
export type CronRunView = Static<typeof CronRunSchema>

const viewOfRun = viewOf(CronRunSchema)
const viewRun = (row: CronRun): CronRunView => viewOfRun(row)

export async function listCrons(db: Db, actor: Actor, key: string): Promise<CronView[]> {
  const project = await findProject(db, actor, key)
  const found = await db.cron.findMany({
    where: { projectId: project.id },
    include: { runs: { orderBy: { id: 'desc' }, take: 1 } },
  })
  const positionOf = (cron: CronSetting) => project.crons.indexOf(lineOfCron(cron))
  return found
    .sort((a, b) => positionOf(a) - positionOf(b))
    .map(({ id, path, schedule, nextAt, runs: [last] }) => ({
      id,
      path,
      schedule,
      nextRunAt: nextAt.toISOString(),
      lastRun: last ? viewRun(last) : null,
    }))
}

export async function listCronRuns(
  db: Db,
  actor: Actor,
  { key, id }: { key: string; id: string },
  page: PageRequest,
): Promise<PageOf<CronRunView>> {
  const project = await findProject(db, actor, key)
  const cron = await db.cron.findFirst({ where: { id, projectId: project.id } })
  if (!cron) throw new Fault('not_found', `There is no cron ${id} in ${project.name}.`)
  const { where, ...rest } = byId(page, 'crr')
  const found = await db.cronRun.findMany({ where: { ...where, cronId: id }, ...rest })
  return pageOf(found, page, viewRun, (row) => [row.id])
}
