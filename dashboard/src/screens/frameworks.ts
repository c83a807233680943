// The display names of the frameworks: those in `named`, others capitalized.
import type { Schemas } from '../kit/index.ts'

const named = {
  auto: 'Automatic',
  static: 'Plain files',
  next: 'Next.js',
  sveltekit: 'SvelteKit',
  'react-router': 'React Router',
  vitepress: 'VitePress',
  solidstart: 'SolidStart',
  'tanstack-start': 'TanStack Start',
  node: 'Node.js server',
  other: 'Other files',
}

const plain =
  'vite react vue svelte astro nuxt remix gatsby eleventy hugo docusaurus angular parcel jekyll qwik nitro' as const

type Words<Text> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text
type Missing = Exclude<Schemas['Framework'], keyof typeof named | Words<typeof plain>>
const _complete: Missing extends never ? true : Missing = true

export const frameworks = [
  ...Object.entries(named),
  ...plain.split(' ').map((value) => [value, value[0]!.toUpperCase() + value.slice(1)] as const),
].map(([value, text]) => ({ value, text }))
