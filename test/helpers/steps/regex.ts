// A regular expression that counts its steps. V8 doesn't say how often it backtracks, so a small backtracking matcher
// repeats each search. It must find the same match as V8.
import { counter } from './counter.ts'

type Node =
  | { kind: 'character'; fits: (text: string) => boolean }
  | { kind: 'assertion'; isStart?: boolean; holds: (text: string, at: number) => boolean }
  | { kind: 'lookahead'; negated: boolean; body: Node }
  | { kind: 'either'; choices: Node[] }
  | { kind: 'sequence'; items: Node[] }
  | { kind: 'repeat'; body: Node; min: number; max: number; greedy: boolean }

type Instruction =
  | { op: 'character'; fits: (text: string) => boolean }
  | { op: 'assertion'; holds: (text: string, at: number) => boolean }
  | { op: 'lookahead'; negated: boolean; program: Instruction[] }
  /** Continues at `first`; backtracks to `second`. */
  | { op: 'split'; first: number; second: number }
  | { op: 'jump'; to: number }
  | { op: 'enter' | 'leave'; loop: number }
  | { op: 'match' }

function parse(source: string, flags: string): Node {
  const characterFlags = flags.replace(/[gymd]/g, '')
  const isUnicode = /[uv]/.test(flags)
  let at = 0

  const startsWith = (text: string) => source.startsWith(text, at)
  function take(pattern: RegExp): string | undefined {
    const found = new RegExp(pattern.source, 'ysu')
    found.lastIndex = at
    const text = found.exec(source)?.[0]
    at += text?.length ?? 0
    return text
  }

  function either(): Node {
    const choices = [sequence()]
    while (startsWith('|')) {
      at++
      choices.push(sequence())
    }
    return choices.length === 1 ? choices[0]! : { kind: 'either', choices }
  }

  function sequence(): Node {
    const items: Node[] = []
    while (at < source.length && !startsWith('|') && !startsWith(')')) items.push(quantified(term()))
    return { kind: 'sequence', items }
  }

  function term(): Node {
    if (take(/\(\?[=!]/)) {
      const negated = source[at - 1] === '!'
      return { kind: 'lookahead', negated, body: closed(either()) }
    }
    if (startsWith('(?<=') || startsWith('(?<!')) throw new Error(`/${source}/: lookbehinds aren't supported`)
    if (take(/\(\?:|\(\?<\w+>|\(/)) return closed(either())
    if (take(/\^/)) return { kind: 'assertion', isStart: !isMultiline, holds: lineStart }
    if (take(/\$/)) return { kind: 'assertion', holds: lineEnd }
    if (take(/\\b/)) return { kind: 'assertion', holds: wordEdge }
    if (take(/\\B/)) return { kind: 'assertion', holds: (text, at) => !wordEdge(text, at) }
    if (/^\\[1-9k]/.test(source.slice(at))) throw new Error(`/${source}/: backreferences aren't supported`)
    const character = take(
      isUnicode
        ? /\[(?:\\.|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\u\w{4}|\\x\w\w|\\c\w|\\.|./
        : /\[(?:\\.|[^\]\\])*\]|\\u\w{4}|\\x\w\w|\\c\w|\\.|./,
    )!
    const expression = new RegExp(`^${character}$`, characterFlags)
    const known = new Map<string, boolean>()
    const fits = (text: string) => {
      const found = known.get(text) ?? expression.test(text)
      known.set(text, found)
      return found
    }
    return { kind: 'character', fits }
  }

  function closed(node: Node): Node {
    if (!take(/\)/)) throw new Error(`/${source}/: unclosed group`)
    return node
  }

  function quantified(body: Node): Node {
    const text = take(/[*+?]|\{\d+(?:,\d*)?\}/)
    if (text === undefined) return body
    const [min, max = min] = { '*': [0, Infinity], '+': [1, Infinity], '?': [0, 1] }[text] ?? bounds(text)
    return { kind: 'repeat', body, min: min!, max: max!, greedy: !take(/\?/) }
  }
  const bounds = (text: string) =>
    text
      .slice(1, -1)
      .split(',')
      .map((digits) => (digits === '' ? Infinity : Number(digits)))

  const isMultiline = flags.includes('m')
  const lineStart = (text: string, at: number) => at === 0 || (isMultiline && /[\n\r\u2028\u2029]/.test(text[at - 1]!))
  const lineEnd = (text: string, at: number) =>
    at === text.length || (isMultiline && /[\n\r\u2028\u2029]/.test(text[at]!))
  const isWord = (character: string | undefined) => character !== undefined && /\w/.test(character)
  const wordEdge = (text: string, at: number) => isWord(text[at - 1]) !== isWord(text[at])

  const whole = either()
  if (at < source.length) throw new Error(`/${source}/: can't parse at index ${at}`)
  return whole
}

const mayBeEmpty = (node: Node): boolean => {
  if (node.kind === 'character') return false
  if (node.kind === 'either') return node.choices.some(mayBeEmpty)
  if (node.kind === 'sequence') return node.items.every(mayBeEmpty)
  return node.kind !== 'repeat' || node.min === 0 || mayBeEmpty(node.body)
}

function compile(whole: Node): Instruction[] {
  const program: Instruction[] = []
  let loops = 0
  const split = (greedy: boolean) => {
    const instruction = { op: 'split' as const, first: program.length + 1, second: program.length + 1 }
    program.push(instruction)
    /** Call this where the code after the loop or the choice begins. */
    return () => {
      instruction[greedy ? 'second' : 'first'] = program.length
    }
  }

  function emit(node: Node): void {
    if (node.kind === 'character') program.push({ op: 'character', fits: node.fits })
    else if (node.kind === 'assertion') program.push({ op: 'assertion', holds: node.holds })
    else if (node.kind === 'lookahead')
      program.push({ op: 'lookahead', negated: node.negated, program: compile(node.body) })
    else if (node.kind === 'sequence') for (const item of node.items) emit(item)
    else if (node.kind === 'either') {
      const ends = node.choices.map((choice, index) => {
        const isLast = index === node.choices.length - 1
        const next = isLast ? () => {} : split(true)
        emit(choice)
        const jump = { op: 'jump' as const, to: 0 }
        program.push(jump)
        next()
        return jump
      })
      for (const end of ends) end.to = program.length
    } else {
      for (let i = 0; i < node.min; i++) emit(node.body)
      // Per ECMAScript, an iteration beyond the minimum that matches the empty string fails.
      const iteration = () => {
        const checked = mayBeEmpty(node.body)
        const loop = loops++
        if (checked) program.push({ op: 'enter', loop })
        emit(node.body)
        if (checked) program.push({ op: 'leave', loop })
      }
      if (node.max === Infinity) {
        const start = program.length
        const end = split(node.greedy)
        iteration()
        program.push({ op: 'jump', to: start })
        end()
      } else {
        const ends: (() => void)[] = []
        for (let i = node.min; i < node.max; i++) {
          ends.push(split(node.greedy))
          iteration()
        }
        for (const end of ends) end()
      }
    }
  }

  emit(whole)
  program.push({ op: 'match' })
  return program
}

/** V8 tries an index between two surrogates too, but no character of an expression begins there. */
function codePointOf(text: string, at: number): string | undefined {
  if (at === text.length || (at > 0 && text.codePointAt(at - 1)! > 0xffff)) return undefined
  return String.fromCodePoint(text.codePointAt(at)!)
}

/** Returns the end of the match that begins at `start`, or -1. Every instruction is a step. */
function run(program: readonly Instruction[], text: string, start: number, isUnicode: boolean): number {
  // Pairs to restore on backtracking: an instruction and an index, or a negated loop number and its entry index.
  const back: number[] = []
  const entered: number[] = []
  let [pc, at] = [0, start]
  for (;;) {
    // A quadratic search would take minutes to finish.
    if (++counter.own > counter.limit) throw new Error(`more than ${counter.limit} steps`)
    const instruction = program[pc++]!
    let failed = false
    switch (instruction.op) {
      case 'match':
        return at
      case 'jump':
        pc = instruction.to
        break
      case 'split':
        back.push(instruction.second, at)
        pc = instruction.first
        break
      case 'character': {
        const character = isUnicode ? codePointOf(text, at) : text[at]
        if (character !== undefined && instruction.fits(character)) at += character.length
        else failed = true
        break
      }
      case 'assertion':
        failed = !instruction.holds(text, at)
        break
      case 'lookahead':
        failed = run(instruction.program, text, at, isUnicode) < 0 !== instruction.negated
        break
      case 'enter':
        back.push(-1 - instruction.loop, entered[instruction.loop] ?? -1)
        entered[instruction.loop] = at
        break
      case 'leave':
        failed = entered[instruction.loop] === at
    }
    while (failed) {
      if (back.length === 0) return -1
      const [place, value] = [back.at(-2)!, back.at(-1)!]
      back.length -= 2
      if (place < 0) entered[-1 - place] = value
      else {
        pc = place
        at = value
        failed = false
      }
    }
  }
}

const beginsAtStart = (node: Node): boolean => {
  if (node.kind === 'either') return node.choices.every(beginsAtStart)
  if (node.kind === 'sequence') return node.items[0] !== undefined && beginsAtStart(node.items[0])
  return node.kind === 'assertion' && node.isStart === true
}

type Matcher = (text: string, start: number) => { index: number; end: number } | null
const matchers = new Map<string, Matcher>()

function matcherOf({ source, flags, sticky }: RegExp): Matcher {
  const isUnicode = /[uv]/.test(flags)
  const known = matchers.get(`/${source}/${flags}`)
  if (known) return known
  const { builtIn } = counter
  const node = parse(source, flags)
  const program = compile(node)
  counter.builtIn = builtIn
  // Like V8, don't try an anchored expression at other indexes.
  const isFixed = sticky || beginsAtStart(node)
  const matcher: Matcher = (text, start) => {
    for (let index = start; index <= text.length; index++) {
      const end = run(program, text, index, isUnicode)
      if (end >= 0) return { index, end }
      if (isFixed) break
    }
    return null
  }
  matchers.set(`/${source}/${flags}`, matcher)
  return matcher
}

/** Replaces RegExp in instrumented modules. */
export class CountingRegExp extends RegExp {
  override exec(text: string): RegExpExecArray | null {
    const start = this.global || this.sticky ? this.lastIndex : 0
    const counted = counter.isOn ? matcherOf(this)(String(text), start) : null
    const found = super.exec(text)
    if (
      counter.isOn &&
      (counted?.index !== found?.index || (counted && counted.end - counted.index !== found![0].length))
    )
      throw new Error(`${this} doesn't match what V8 matches: ${JSON.stringify(text).slice(0, 200)}`)
    return found
  }
}
