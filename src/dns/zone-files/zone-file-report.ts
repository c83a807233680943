// Reports the outcome for every line of a zone file: imported, changed, skipped, or refused, and why.
import type { ZoneEntry } from './zone-file-entries.ts'

// Lines that can be skipped without loss: the platform creates them, or they belong elsewhere or already exist.
const harmlessReasons = ['soa', 'apex_ns', 'out_of_zone', 'dnssec', 'duplicate', 'placeholder'] as const
// Lines whose data would be lost, so somebody has to confirm it.
const lossyReasons = ['unsupported_type', 'other_class', 'include'] as const
export const skipReasons = [...harmlessReasons, ...lossyReasons] as const

export type SkipReason = (typeof skipReasons)[number]

export type Outcome =
  | { kind: 'imported'; notes: string[] }
  | { kind: 'skipped'; reason: SkipReason; detail: string }
  | { kind: 'refused'; detail: string }
  // A directive, which has no record.
  | { kind: 'understood' }

export type SkippedLine = { line: number; text: string; reason: SkipReason; detail: string }
export type LineDetail = { line: number; detail: string }
// Consecutive lines with the same result.
export type ReportedLines = {
  line: number
  lastLine: number
  result: 'imported' | 'changed' | 'skipped'
  detail: string | null
}

// Each list has a limited number of items, because a file of many MiB may have a million lines.
export type ZoneFileReport = {
  lines: ReportedLines[]
  counts: { imported: number; changed: number; skipped: number }
  skipped: SkippedLine[]
  // Lines that were imported with a change.
  notes: LineDetail[]
  // Skipped lines whose data would be lost.
  lossy: LineDetail[]
  errors: LineDetail[]
}

const maxReported = 2000

function push<T>(list: T[], item: T): void {
  if (list.length < maxReported) list.push(item)
}

const isLossy = (reason: SkipReason) => (lossyReasons as readonly SkipReason[]).includes(reason)

export function createReport(): { report: ZoneFileReport; add(entry: ZoneEntry, outcome: Outcome): void } {
  const report: ZoneFileReport = {
    lines: [],
    counts: { imported: 0, changed: 0, skipped: 0 },
    skipped: [],
    notes: [],
    lossy: [],
    errors: [],
  }
  let last: ReportedLines | null = null

  function addLines({ line, lastLine }: ZoneEntry, result: ReportedLines['result'], detail: string | null): void {
    report.counts[result]++
    if (last?.result === result && last.detail === detail) {
      last.lastLine = lastLine
      return
    }
    last = { line, lastLine, result, detail }
    push(report.lines, last)
  }

  return {
    report,
    add(entry, outcome) {
      const { line, text } = entry
      if (outcome.kind === 'imported') {
        const detail = outcome.notes.join(' ')
        if (detail) push(report.notes, { line, detail })
        addLines(entry, detail ? 'changed' : 'imported', detail || null)
      } else if (outcome.kind === 'skipped') {
        const { reason, detail } = outcome
        push(report.skipped, { line, text, reason, detail })
        if (isLossy(reason)) push(report.lossy, { line, detail })
        addLines(entry, 'skipped', detail)
      } else if (outcome.kind === 'refused') {
        report.errors.push({ line: entry.problem?.line ?? line, detail: entry.problem?.detail ?? outcome.detail })
      }
    },
  }
}
