// The steps of a build: how long each took, and how long the current one usually takes.
import { Bar, duration, now } from '../kit/index.ts'
import type { StepTimes } from './deployment-log-data.ts'
import { type Deployment, median } from './deployment-table.tsx'

const names = ['queue', 'clone', 'install', 'build', 'publish'] as const
type Name = (typeof names)[number]
type Step = { name: Name; is: 'done' | 'now' | 'failed' | 'ahead' | 'skipped'; ms: number | null }

const queueMs = (of: Deployment) =>
  of.startedAt ? Math.max(0, Date.parse(of.startedAt) - Date.parse(of.createdAt)) : null

/** The median duration of a step in earlier deployments. */
export function usualMs(name: Name, before: readonly Deployment[]): number | null {
  const all = before.map((it) =>
    name === 'queue' ? queueMs(it) : it.steps.find((step) => step.name === name)?.durationMs,
  )
  return median(all.filter((ms): ms is number => typeof ms === 'number'))
}

/** Durations come from the deployment once it has finished, and from its log lines while it runs. */
export function stepsOf(of: Deployment, lines: StepTimes, nowMs: number): Step[] {
  const building = of.state === 'BUILDING'
  const known = new Map(of.steps.map(({ name, durationMs }) => [name, durationMs]))
  const started = of.startedAt ? Date.parse(of.startedAt) : null
  const begun = names.slice(1).map((name) => ({ name, from: lines.get(name)?.from ?? null }))
  if (begun[0]!.from === null) begun[0]!.from = started
  const end = of.finishedAt ? Date.parse(of.finishedAt) : nowMs
  const lastBegun = begun.findLast(({ from }) => from !== null)?.name
  const steps = begun.map(({ name, from }, index): Step => {
    const next = begun.slice(index + 1).find((later) => later.from !== null)?.from ?? end
    const ms = known.get(name) ?? (from === null || started === null ? null : Math.max(0, next - from))
    const isLast = known.size > 0 ? of.steps.at(-1)?.name === name : lastBegun === name && started !== null
    if (ms === null) return { name, is: building || of.state !== 'READY' ? 'ahead' : 'skipped', ms }
    if (building) return { name, is: isLast ? 'now' : 'done', ms }
    return { name, is: isLast && of.state !== 'READY' ? 'failed' : 'done', ms }
  })
  // A skipped step, such as installing for plain files.
  const last = steps.findLastIndex(({ ms }) => ms !== null)
  for (const [index, step] of steps.entries()) if (step.ms === null && index < last) step.is = 'skipped'
  const waited = queueMs(of)
  const queue: Step =
    waited === null
      ? { name: 'queue', is: building ? 'now' : 'skipped', ms: building ? nowMs - Date.parse(of.createdAt) : null }
      : { name: 'queue', is: 'done', ms: waited }
  return [queue, ...steps]
}

type StepsProps = { of: Deployment; lines: StepTimes; before: readonly Deployment[] }

export function Steps({ of, lines, before }: StepsProps) {
  const steps = stepsOf(of, lines, of.state === 'BUILDING' ? now.value : 0)
  return (
    <ol class="steps" aria-label="Steps of the build">
      {steps.map((step) => (
        <li key={step.name} aria-current={step.is === 'now' ? 'step' : undefined}>
          <b>{step.name[0]!.toUpperCase() + step.name.slice(1)}</b>
          <StepText step={step} usual={usualMs(step.name, before)} place={of.queuePosition} />
        </li>
      ))}
    </ol>
  )
}

type StepTextProps = { step: Step; usual: number | null; place: number | null }

function StepText({ step: { name, is, ms }, usual, place }: StepTextProps) {
  if (is === 'now') {
    const soFar = `${duration(ms ?? 0)} so far`
    const where = name === 'queue' && place ? `, number ${place}` : usual === null ? '' : `, usually ${duration(usual)}`
    return (
      <>
        <span class="soft figure">
          {soFar}
          {where}
        </span>
        {usual === null || usual === 0 ? (
          <div class="bar" />
        ) : (
          <Bar
            label={`${name}, compared with the usual time`}
            value={Math.min(ms ?? 0, usual)}
            max={usual}
            format={duration}
            tone="go"
          />
        )}
      </>
    )
  }
  const text = is === 'skipped' ? 'skipped' : ms === null ? '–' : duration(ms)
  return (
    <>
      <span class="soft figure">
        {text}
        {is === 'failed' && ', failed here'}
      </span>
      <div class="bar" aria-hidden="true">
        {is === 'done' && <i class="all" />}
        {is === 'failed' && <i class="all full" />}
      </div>
    </>
  )
}
