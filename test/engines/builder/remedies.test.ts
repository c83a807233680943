import { describe, expect, test } from 'vitest'
import { remedyFor } from '../../../src/engines/builder/remedies.ts'
import { counted, takesLinearSteps } from '../../helpers/steps/steps.ts'

type Remedies = typeof import('../../../src/engines/builder/remedies.ts')
const counting = await counted<Remedies>('src/engines/builder/remedies.ts')

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
      'buildNetwork',
    ],
    ["npm error 404  '@acme/secret@1' is not in this registry.\nnpm error code E404", 'not in the registry'],
    ['npm error code EJSONPARSE', 'no JSON'],
    ['Node.js v20.20.2 is not supported by Astro!', '.nvmrc'],
    ['Vite requires Node.js version 20.19+ or 22.12+', '.nvmrc'],
    ['FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory', 'NODE_OPTIONS'],
    ['getaddrinfo ENOTFOUND fonts.googleapis.com', 'buildNetwork'],
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

  test.each([
    'E404 ',
    'sh: 1: ',
    'Failed to fetch ',
    'Node.js ',
    'requires Node.js version ',
    "Couldn't find ",
    "Cannot find module 'a",
  ])('that prints %j very often is searched in linear steps', async (part) => {
    const never = part.replace('E404', 'E40')
    await takesLinearSteps(1 << 10, (size) => counting.remedyFor(never.repeat(size / part.length)))
  })
})
