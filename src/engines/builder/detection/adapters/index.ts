// All supported frameworks. The first adapter that matches wins.
import type { Adapter } from '../../project/adapter.ts'
import { angular } from './angular.ts'
import { astro } from './astro.ts'
import { next } from './next.ts'
import { nitro, solidStart, tanstackStart } from './nitro.ts'
import { nodeLibrary, nodeScript } from './node.ts'
import { nuxt } from './nuxt.ts'
import { hugo, jekyll } from './programs.ts'
import { qwik } from './qwik.ts'
import { reactRouter, remix } from './react-router.ts'
import { docusaurus, eleventy, gatsby, vitepress } from './sites.ts'
import { sveltekit } from './sveltekit.ts'
import { createReactApp, parcel, vite, vueCli } from './vite.ts'

export const adapters: readonly Adapter[] = [
  next,
  nuxt,
  sveltekit,
  astro,
  reactRouter,
  remix,
  gatsby,
  docusaurus,
  eleventy,
  vitepress,
  angular,
  solidStart,
  tanstackStart,
  qwik,
  nitro,
  // Before the bundlers, because a server may use one for its pages.
  nodeLibrary,
  createReactApp,
  vueCli,
  vite,
  parcel,
  hugo,
  jekyll,
  nodeScript,
]
