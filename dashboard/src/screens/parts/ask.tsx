// A dialog that confirms a reversible action.
import type { ComponentChildren } from 'preact'
import { type Call, Dialog, type DialogState, Form } from '../../kit/index.ts'

type AskProps<T> = {
  of: DialogState
  title: string
  call: Call<T>
  /** The label of the button. */
  action: string
  done?(answer: T): void
  children: ComponentChildren
}

export function Ask<T>({ of, title, call, action, done, children }: AskProps<T>) {
  const finish = (answer: T) => {
    of.close()
    done?.(answer)
  }
  return (
    <Dialog of={of} title={title}>
      <Form call={() => call} submit={action} cancel={of.close} done={finish}>
        {children}
      </Form>
    </Dialog>
  )
}
