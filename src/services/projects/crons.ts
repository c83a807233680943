// Crons as the settings of a project have them: checked, and kept as rows that know when they are due.
import type { Static } from '@sinclair/typebox'
import { enqueue } from '../../jobs/queue.ts'
import { BadSchedule, nextRun, parseSchedule } from '../../platform/cron-schedule.ts'
import type { Db } from '../../platform/database/database.ts'
import type { FieldError } from '../../platform/errors.ts'
import { badField, type Sound } from '../../platform/fields.ts'
import { newId, timeOf } from '../../platform/ids.ts'
import type { CronSetting as CronSettingSchema } from '../../schemas/project-settings.ts'

export type CronSetting = Static<typeof CronSettingSchema>

/** As a crontab has it; a path has no blank in it. */
export const lineOfCron = ({ path, schedule }: CronSetting) => `${schedule} ${path}`

export function cronOfLine(line: string): CronSetting {
  const end = line.lastIndexOf(' ')
  return { path: line.slice(end + 1), schedule: line.slice(0, end) }
}

/** What a schema cannot say of crons. */
export function cronErrors(crons: readonly (Sound<CronSetting> | undefined)[]): FieldError[] {
  const seen = new Set<string>()
  return crons.flatMap((cron, index): FieldError[] => {
    const { path, schedule } = cron ?? {}
    if (schedule === undefined) return []
    try {
      parseSchedule(schedule)
    } catch (error) {
      if (!(error instanceof BadSchedule)) throw error
      return [badField(`#/settings/crons/${index}/schedule`, 'bad_format', error.message)]
    }
    if (path === undefined) return []
    const key = lineOfCron({ path, schedule })
    const repeated = seen.has(key)
    seen.add(key)
    return repeated ? [badField(`#/settings/crons/${index}`, 'repeated', 'is listed twice')] : []
  })
}

/** Makes the rows what the settings say; the project is locked. What stays keeps its time and its runs. */
export async function writeCrons(db: Db, projectId: string, crons: readonly CronSetting[]): Promise<void> {
  const wanted = new Set(crons.map(lineOfCron))
  const there = await db.cron.findMany({ where: { projectId } })
  const gone = there.filter((row) => !wanted.has(lineOfCron(row))).map(({ id }) => id)
  if (gone.length > 0) await db.cron.deleteMany({ where: { id: { in: gone } } })
  const known = new Set(there.map(lineOfCron))
  for (const { path, schedule } of crons.filter((cron) => !known.has(lineOfCron(cron)))) {
    const id = newId('crn')
    const createdAt = timeOf(id)
    const nextAt = nextRun(parseSchedule(schedule), createdAt)!
    await db.cron.create({ data: { id, projectId, path, schedule, nextAt, createdAt } })
    await enqueue(db, { kind: 'cron', key: id, payload: { cronId: id }, runAt: nextAt })
  }
}
