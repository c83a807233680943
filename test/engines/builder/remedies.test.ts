import { describe, expect, test } from 'vitest'
import { remedyFor as findRemedy } from '../../../src/engines/builder/explain/remedies.ts'
import { counted, takesLinearSteps } from '../../helpers/steps/steps.ts'

type Remedies = typeof import('../../../src/engines/builder/explain/remedies.ts')
const counting = await counted<Remedies>('src/engines/builder/explain/remedies.ts')
const open = { network: 'public' as const, hosts: ['registry.npmjs.org:443', 'git.example:443'] }
const remedyFor = (printed: string) => findRemedy(printed, open)

describe('a command that failed', () => {
  test.each([
    [' ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile" because', 'run pnpm install'],
    ['error Your lockfile needs to be updated, but yarn was run with `--frozen-lockfile`.', 'run yarn install'],
    ['➤ YN0028: │ The lockfile would have been modified by this install', 'run yarn install'],
    ['error: lockfile had changes, but lockfile is frozen', 'run bun install'],
    ['npm error `npm ci` can only install packages when your package.json and', 'run npm install'],
    ['npm error code ERESOLVE', '--legacy-peer-deps'],
    ['npm ERR! code ERESOLVE', '--legacy-peer-deps'],
    [
      'npm warn ERESOLVE overriding peer dependency\nnpm error code 1\ngetaddrinfo ENOTFOUND github.com',
      'github.com could not be reached: check its name',
    ],
    ["npm error 404  '@acme/secret@1' is not in this registry.\nnpm error code E404", 'not in the registry'],
    ['npm error code EJSONPARSE', 'not valid JSON'],
    ['Node.js v20.20.2 is not supported by Astro!', '.nvmrc'],
    ['Vite requires Node.js version 20.19+ or 22.12+', '.nvmrc'],
    ['FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory', 'NODE_OPTIONS'],
    ['getaddrinfo ENOTFOUND fonts.googleapis.com', 'fonts.googleapis.com could not be reached'],
    ['sh: 1: tsc: not found', 'NODE_ENV'],
    ["Error: Cannot find module 'express'", 'add its package'],
    ["Error: Cannot find module '@swc/core-linux-arm64-gnu'", 'commit the new lockfile'],
    ['Cannot find module @rollup/rollup-linux-x64-gnu. npm has a bug related to optional dependencies', 'new lockfile'],
    ['Error: Cannot find native binding.', 'the registry lacks'],
    ["Error: Cannot find module './swc-html.linux-arm64-gnu.node'", 'the registry lacks'],
  ])('with %j is told what helps', (printed, remedy) => {
    expect(remedyFor(`a\n${printed}\nb`)).toContain(remedy)
  })

  test.each(['', 'Error: oops', "Error: Cannot find module './main.js'", 'SECRET: x', 'npm warn E404'])(
    'with %j is not',
    (printed) => {
      expect(remedyFor(printed)).toBeNull()
    },
  )

  const blamed = (network: 'registry' | 'none') => `the project’s buildNetwork is ${network}`
  test.each([
    ['getaddrinfo EAI_AGAIN api.example.com', 'none', `api.example.com could not be reached: ${blamed('none')}`],
    [
      'curl: (6) Could not resolve host: api.example.com',
      'registry',
      `api.example.com could not be reached: ${blamed('registry')}`,
    ],
    ['api.example.com:443 is not on the list of hosts this sandbox may reach.', 'registry', blamed('registry')],
    [
      'Failed to fetch `Inter` from Google Fonts.',
      'registry',
      `fonts.googleapis.com could not be reached: ${blamed('registry')}`,
    ],
    ['getaddrinfo ENOTFOUND git.example', 'registry', 'git.example could not be reached: check its name'],
    [
      'npm error errno ETIMEDOUT\nnpm error network request to https://api.example.com/x failed, reason: x',
      'public',
      'api.example.com could not be reached: check its name',
    ],
    ['connect ETIMEDOUT 10.1.2.3:443', 'public', '10.1.2.3 could not be reached: it is a private address'],
    [
      'db.internal has no public address, and this sandbox reaches no other.',
      'public',
      'db.internal could not be reached: it has no public address',
    ],
    ['Error: connect ECONNREFUSED 127.0.0.1:5432', 'none', 'Nothing listens at 127.0.0.1 in the build'],
    ['Error: connect ECONNREFUSED ::1:5432', 'public', 'Nothing listens at ::1 in the build'],
    ['errno: ECONNREFUSED', 'public', 'A host could not be reached: check its name'],
  ] as const)(
    'with %j, whose network is %s, hears which host was not reached, and what blocks it',
    (printed, network, remedy) => {
      expect(findRemedy(printed, { ...open, network })).toContain(remedy)
      if (network === 'public') expect(findRemedy(printed, open)).not.toContain('buildNetwork')
    },
  )

  test.each([
    'api.example.com:443 is not on the list of host',
    'getaddrinfo ENOTFOUN',
    'x'.repeat(16),
    'E404 ',
    'sh: 1: ',
    'Failed to fetch ',
    'Node.js ',
    'requires Node.js version ',
    "Couldn't find ",
    "Cannot find module 'a",
  ])('that prints %j very often is searched in linear steps', async (part) => {
    const never = part.replace('E404', 'E40')
    await takesLinearSteps(1 << 10, (size) => counting.remedyFor(never.repeat(size / part.length), open))
  })
})
