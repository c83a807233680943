// Instruments modules: `import('…?steps')` loads a copy of a module, and of everything it imports by a relative path,
// that counts each function call and each loop iteration.
import type { Plugin } from 'vitest/config'

const suffix = '?steps'

type Node = { type: string; start: number; end: number; [key: string]: unknown }
const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string'

const loops = new Set(['ForStatement', 'ForInStatement', 'ForOfStatement', 'WhileStatement', 'DoWhileStatement'])
const functions = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

function instrument(code: string, program: Node): string {
  const inserted: { at: number; text: string; order: number }[] = []
  const insert = (at: number, text: string, isEnd = false) => {
    // At one index, ends come before starts, and inner ends before outer ones.
    inserted.push({ at, text, order: isEnd ? -inserted.length : inserted.length })
  }
  const around = ({ start, end }: Node, before: string, after: string) => {
    insert(start, before)
    insert(end, after, true)
  }
  function visit(node: Node): void {
    const body = node.body as Node | undefined
    if ((loops.has(node.type) || functions.has(node.type)) && body) {
      if (body.type === 'BlockStatement') insert(body.start + 1, 'steps$.own++;')
      else if (loops.has(node.type)) around(body, '{steps$.own++;', '}')
      else around(body, '(steps$.own++,', ')')
    } else if (node.type === 'Literal' && node.regex) around(node, 'new RegExp(', ')')
    else if (node.type === 'SpreadElement') around(node.argument as Node, 'steps$.all(', ')')
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child)
    }
  }
  visit(program)
  inserted.sort((a, b) => a.at - b.at || a.order - b.order)
  let text = ''
  let done = 0
  for (const { at, text: more } of inserted) {
    text += code.slice(done, at) + more
    done = at
  }
  return `const steps$ = globalThis[Symbol.for('steps')], RegExp = steps$.RegExp;${text}${code.slice(done)}`
}

export function countSteps(): Plugin {
  return {
    name: 'count-steps',
    enforce: 'pre',
    async resolveId(source, importer, options) {
      if (!importer?.endsWith(suffix) || !source.startsWith('.')) return null
      const found = await this.resolve(source, importer.slice(0, -suffix.length), { ...options, skipSelf: true })
      return found?.id.endsWith('.ts') ? { ...found, id: `${found.id}${suffix}` } : found
    },
    transform: {
      order: 'post',
      handler(code, id) {
        if (!id.endsWith(suffix)) return null
        return { code: instrument(code, this.parse(code) as unknown as Node), map: null }
      },
    },
  }
}
