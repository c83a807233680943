// The frameworks as people call them.
import type { Schemas } from '../kit/index.ts'

export const frameworks: { value: Schemas['Framework']; text: string }[] = [
  { value: 'auto', text: 'Found out from the repository' },
  { value: 'static', text: 'Plain files' },
  { value: 'vite', text: 'Vite' },
  { value: 'react', text: 'React' },
  { value: 'vue', text: 'Vue' },
  { value: 'svelte', text: 'Svelte' },
  { value: 'astro', text: 'Astro' },
  { value: 'next', text: 'Next.js' },
  { value: 'nuxt', text: 'Nuxt' },
  { value: 'sveltekit', text: 'SvelteKit' },
  { value: 'remix', text: 'Remix' },
  { value: 'gatsby', text: 'Gatsby' },
  { value: 'eleventy', text: 'Eleventy' },
  { value: 'hugo', text: 'Hugo' },
  { value: 'docusaurus', text: 'Docusaurus' },
  { value: 'react-router', text: 'React Router' },
  { value: 'angular', text: 'Angular' },
  { value: 'vitepress', text: 'VitePress' },
  { value: 'parcel', text: 'Parcel' },
  { value: 'jekyll', text: 'Jekyll' },
  { value: 'node', text: 'Node.js server' },
  { value: 'other', text: 'Another one that makes files' },
]
