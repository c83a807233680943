// Nuxt: generated files, or a Nitro server.
import { type Adapter, configFiles, files, server } from '../../project/adapter.ts'
import { isSet, mayBe } from '../../project/config-text.ts'

export const nuxt: Adapter = {
  name: 'nuxt',
  title: 'Nuxt',
  packages: ['nuxt', 'nuxt-nightly'],
  configs: configFiles('nuxt.config'),
  build: 'npx --no-install nuxt build',
  plan({ buildText }, config) {
    const outputs = ['.output/public', 'dist']
    if (/\bgenerate\b|--prerender\b/.test(buildText)) return files(outputs, 'The build generates a static site.')
    if (mayBe(config, 'preset', 'static')) return files(outputs, "The configuration of Nuxt has preset: 'static'.")
    const plan = server('node .output/server/index.mjs', 'The build makes a server; nuxt generate would make files.')
    return isSet(config, 'trace', false) ? plan : { ...plan, selfContained: true }
  },
}
