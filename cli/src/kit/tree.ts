// Declares commands. Only the called one is created, because creating all of them takes longer than running one.
import { type Command, Option } from 'commander'
import type { Action } from './action.ts'

// biome-ignore lint/suspicious/noExplicitAny: each action has the options declared next to it.
type Load = () => Promise<Action<any>>

export type On = (command: Command, load: Load) => void

export type Tree = {
  top(usage: string, text: string): Command
  add(parent: Command, usage: string, text: string, options?: { isDefault: boolean }): Command
  on: On
}

export const projectOption = () => new Option('-p, --project <name>', 'project (default: the linked one)')

// Replaces a command that isn't created and ignores all declarations.
const absent: Command = new Proxy({} as Command, { get: () => () => absent })

export function createTree(program: Command, call: On, only: string | undefined): Tree {
  const isCreated = (name: string) => only === undefined || only === name
  const add: Tree['add'] = (parent, usage, text, options) => parent.command(usage, options).description(text)
  return {
    add,
    top: (usage, text) => (isCreated(usage.split(' ')[0]!) ? add(program, usage, text) : absent),
    on(command, load) {
      if (command !== absent) call(command, load)
    },
  }
}
