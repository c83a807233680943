// Angular: angular.json names the output folder and says whether a server renders the pages.
import { type Adapter, files, server } from '../../project/adapter.ts'
import { plainFolder } from '../../project/config-text.ts'
import { ownOf, readObject } from '../../project/manifest.ts'
import { reasonOf } from '../../project/single-page.ts'

/** The application in angular.json that gets built. */
async function applicationOf(config: string): Promise<{ name: string; options: unknown; builder: string } | null> {
  const found = await readObject(config)
  const projects = ownOf(found, 'projects')
  if (projects === null || typeof projects !== 'object') return null
  const wanted = ownOf(found, 'defaultProject')
  const applications = Object.keys(projects)
    .slice(0, 200)
    .filter((name) => ownOf(ownOf(projects, name), 'projectType') !== 'library')
  const name = applications.find((name) => name === wanted) ?? applications[0]
  if (name === undefined) return null
  const project = ownOf(projects, name)
  const build = ownOf(ownOf(project, 'architect') ?? ownOf(project, 'targets'), 'build')
  const builder = ownOf(build, 'builder')
  return { name, options: ownOf(build, 'options'), builder: typeof builder === 'string' ? builder : '' }
}

// Angular refuses hosts missing from its configuration. The edge only forwards requests for the project's hosts.
// biome-ignore lint/suspicious/noTemplateCurlyInString: the shell fills it in.
const anyHost = 'NG_ALLOWED_HOSTS="${NG_ALLOWED_HOSTS:-*}"'

export const angular: Adapter = {
  name: 'angular',
  title: 'Angular',
  packages: ['@angular/core'],
  files: ['angular.json'],
  configs: ['angular.json'],
  build: 'npx --no-install ng build',
  async plan(_facts, config) {
    const application = await applicationOf(config)
    if (!application) return files(['dist'], 'angular.json names no application, so dist is taken.')
    const { name, options, builder } = application
    const path = ownOf(options, 'outputPath')
    const base = ownOf(path, 'base')
    const written = typeof path === 'string' ? path : typeof base === 'string' ? base : `dist/${name}`
    const folder = plainFolder(written) ?? 'dist'
    const singlePage = reasonOf('Angular')
    if (builder.endsWith(':browser')) {
      return { ...files([folder], `angular.json has ${name} written to ${folder}.`), singlePage }
    }
    const rendered = ownOf(options, 'ssr')
    if (rendered && ownOf(options, 'outputMode') !== 'static') {
      return server(`${anyHost} node '${folder}/server/server.mjs'`, `angular.json has ${name} rendered by a server.`)
    }
    const part = ownOf(path, 'browser')
    const browser = typeof part === 'string' ? part : 'browser'
    const output = browser === '' ? folder : (plainFolder(`${folder}/${browser}`) ?? folder)
    const plan = files([output, folder], `angular.json has ${name} written to ${output}.`)
    // With prerendering, the build writes a page for each route.
    return rendered ? plan : { ...plan, singlePage }
  },
}
