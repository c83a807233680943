// A screen of one resource, whose heading shows while it loads and if it doesn't exist.
import type { ComponentChildren } from 'preact'
import { Loaded, type Query, Top } from '../kit/index.ts'

type ResourceProps<T> = { of: Query<T>; title: string; trail: ComponentChildren; children(data: T): ComponentChildren }

export function Resource<T>({ of, title, trail, children }: ResourceProps<T>) {
  if (of.data !== undefined) return <>{children(of.data)}</>
  return (
    <>
      <Top title={title} trail={trail} />
      <Loaded of={of}>{children}</Loaded>
    </>
  )
}
