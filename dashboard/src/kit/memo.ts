// Skips rendering a component while `equal` reports unchanged properties.
import { Component, type ComponentType, h } from 'preact'

export function memo<P extends object>(
  of: ComponentType<P>,
  equal: (before: P, after: P) => boolean,
): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return !equal(this.props as P, next)
    }
    override render() {
      return h(of, this.props as P & { children?: never })
    }
  }
}
