// A screen of one thing: until it is read, and where it does not exist, its head is there all the same.
import type { ComponentChildren } from 'preact'
import { Loaded, type Query, Top } from '../kit/index.ts'

type FoundProps<T> = { of: Query<T>; title: string; trail: ComponentChildren; children(data: T): ComponentChildren }

export function Found<T>({ of, title, trail, children }: FoundProps<T>) {
  if (of.data !== undefined) return <>{children(of.data)}</>
  return (
    <>
      <Top title={title} trail={trail} />
      <Loaded of={of}>{children}</Loaded>
    </>
  )
}
