// The line that says why a command failed, in what its tools print.
import { describe, expect, test } from 'vitest'
import { findErrorLine } from '../../../src/engines/builder/explain/error-line.ts'
import { counted, takesLinearSteps } from '../../helpers/steps/steps.ts'

type Module = typeof import('../../../src/engines/builder/explain/error-line.ts')
const counting = await counted<Module>('src/engines/builder/explain/error-line.ts')

const linesOf = (text: string, from = 1) => text.split('\n').map((text, index) => ({ seq: from + index, text }))
const find = (text: string) => findErrorLine(linesOf(text))

const frames = `    at Module._load (node:internal/modules/cjs/loader:1341:5)
    at node:internal/main/run_main_module:33:47`

// Printed by these tools: Node 24.21, npm 11.19, TypeScript 7.0, esbuild 0.28, Vite 8.3, git, curl and dash.
const printed: [tool: string, output: string, line: string][] = [
  [
    'TypeScript',
    `
> build
> tsc -p .

src/x.ts(1,17): error TS2307: Cannot find module './nope' or its corresponding type declarations.
src/x.ts(1,64): error TS2322: Type 'string' is not assignable to type 'number'.`,
    "src/x.ts(1,17): error TS2307: Cannot find module './nope' or its corresponding type declarations.",
  ],
  [
    'TypeScript, pretty',
    `src/x.ts:1:17 - error TS2307: Cannot find module './nope' or its corresponding type declarations.

1 import {a} from "./nope"; console.log(a)
                  ~~~~~~~~


Found 3 errors in the same file, starting at: src/x.ts:1
`,
    "src/x.ts:1:17 - error TS2307: Cannot find module './nope' or its corresponding type declarations.",
  ],
  [
    'esbuild',
    `▲ [WARNING] Expected "}" to go with "{" [css-syntax-error]

✘ [ERROR] Could not resolve "./nope"

    src/x.ts:1:16:
      1 │ import {a} from "./nope"; import b from "not-installed"; const s: n...
        ╵                 ~~~~~~~~

✘ [ERROR] Could not resolve "not-installed"

2 errors`,
    '✘ [ERROR] Could not resolve "./nope"',
  ],
  [
    'Vite',
    `vite v8.3.8 building client environment for production...
transforming...
✓ 4 modules transformed.
✗ Build failed in 170ms
error during build:
Build failed with 1 error:

[UNRESOLVED_IMPORT] Could not resolve './gone.css' in src/main.js
   ╭─[ src/main.js:1:40 ]
   │
 1 │ import {missing} from "./b.js"; import "./gone.css"; console.log(missing)
   │                                        ──────┬─────
───╯

    at aggregateBindingErrorsIntoJsError (file:///build/node_modules/rolldown/dist/shared/error-CEbRa698.mjs:50:18)
    at async CAC.<anonymous> (file:///build/node_modules/vite/dist/node/cli.js:789:3) {
  errors: [Getter/Setter]
}`,
    "[UNRESOLVED_IMPORT] Could not resolve './gone.css' in src/main.js",
  ],
  [
    'Node, a module that is missing',
    `node:internal/modules/cjs/loader:1568
  throw err;
  ^

Error: Cannot find module 'nope'
Require stack:
- /build/server.js
${frames} {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/build/server.js' ]
}

Node.js v24.21.0`,
    "Error: Cannot find module 'nope'",
  ],
  [
    'Node, an error behind one that it survived',
    `Error: no optional settings, going on
    at settings (/build/server.cjs:2:26)
Starting
/build/server.cjs:3
function start() { throw new TypeError("Cannot read properties of undefined (reading 'url')") }
                   ^

TypeError: Cannot read properties of undefined (reading 'url')
    at start (/build/server.cjs:3:26)
${frames}

Node.js v24.21.0`,
    "TypeError: Cannot read properties of undefined (reading 'url')",
  ],
  [
    'Node, a connection that is refused',
    `node:events:505
    throw er; // Unhandled 'error' event
    ^

Error: connect ECONNREFUSED 127.0.0.1:5432
    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:2021:16)
Emitted 'error' event on Socket instance at:
    at emitErrorNT (node:internal/streams/destroy:170:8)
    at process.processTicksAndRejections (node:internal/process/task_queues:90:21) {
  errno: -111,
  code: 'ECONNREFUSED',
  port: 5432
}

Node.js v24.21.0`,
    'Error: connect ECONNREFUSED 127.0.0.1:5432',
  ],
  [
    'Node, a fetch',
    `node:internal/process/promises:394
    triggerUncaughtException(err, true /* fromPromise */);
    ^

[TypeError: fetch failed] {
  [cause]: Error: getaddrinfo ENOTFOUND nope.invalid
      at GetAddrInfoReqWrap.onlookupall [as oncomplete] (node:dns:123:26) {
    errno: -3008,
    code: 'ENOTFOUND',
    hostname: 'nope.invalid'
  }
}

Node.js v24.21.0`,
    'Error: getaddrinfo ENOTFOUND nope.invalid',
  ],
  [
    'Node, a syntax error',
    `/build/bad.cjs:1
const = 1
      ^

SyntaxError: Unexpected token '='
    at wrapSafe (node:internal/modules/cjs/loader:1861:18)
${frames}

Node.js v24.21.0`,
    "SyntaxError: Unexpected token '='",
  ],
  [
    'npm, a package that is missing',
    `npm warn Unknown user config "nodedir". This will stop working in the next major version of npm.
npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/not-there
npm error 404
npm error 404  The requested resource 'not-there@1' could not be found or you do not have permission to access it.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm error A complete log of this run can be found in: /tmp/.npm/_logs/2026-11-19T04_33_09_309Z-debug-0.log`,
    '404 Not Found - GET https://registry.npmjs.org/not-there',
  ],
  [
    'npm, a host that is missing',
    `npm error code ENOTFOUND
npm error syscall getaddrinfo
npm error errno ENOTFOUND
npm error network request to https://nope.invalid/x.tgz failed, reason: getaddrinfo ENOTFOUND nope.invalid
npm error network This is a problem related to network connectivity.
npm error network In most cases you are behind a proxy or have bad network settings.`,
    'network request to https://nope.invalid/x.tgz failed, reason: getaddrinfo ENOTFOUND nope.invalid',
  ],
  [
    'npm, a script that is missing',
    `npm error Missing script: "nope"
npm error
npm error To see a list of scripts, run:
npm error   npm run`,
    'Missing script: "nope"',
  ],
  [
    'git',
    "Cloning into 'x'...\nfatal: unable to access 'https://nope.invalid/x/': Could not resolve host: nope.invalid",
    "fatal: unable to access 'https://nope.invalid/x/': Could not resolve host: nope.invalid",
  ],
  ['curl', 'curl: (6) Could not resolve host: nope.invalid', 'curl: (6) Could not resolve host: nope.invalid'],
  ['a shell', '> build\n> nosuch\n\nsh: 1: nosuch: not found', 'sh: 1: nosuch: not found'],
]

// Not printed here, but written from what is known of the form of their output.
const written: typeof printed = [
  [
    'Vite 6',
    `x Build failed in 52ms
error during build:
src/main.js (1:7): "missing" is not exported by "src/b.js", imported by "src/main.js".
file: /build/src/main.js:1:7`,
    'src/main.js (1:7): "missing" is not exported by "src/b.js", imported by "src/main.js".',
  ],
  [
    'webpack',
    `asset main.js 1.2 KiB [emitted]
ERROR in ./src/index.js 1:0-20
Module not found: Error: Can't resolve './x' in '/build/src'

webpack 5.99.0 compiled with 1 error in 321 ms`,
    "Module not found: Error: Can't resolve './x' in '/build/src'",
  ],
  [
    'webpack, a loader',
    `ERROR in ./src/index.js
Module build failed (from ./node_modules/babel-loader/lib/index.js):
SyntaxError: /build/src/index.js: Unexpected token (1:2)`,
    'SyntaxError: /build/src/index.js: Unexpected token (1:2)',
  ],
  [
    'Next, types',
    `   Creating an optimized production build ...
Failed to compile.

./app/page.tsx:5:3
Type error: Type 'string' is not assignable to type 'number'.

Next.js build worker exited with code: 1 and signal: null`,
    "Type error: Type 'string' is not assignable to type 'number'.",
  ],
  [
    'Next, Turbopack',
    `> Build error occurred
Error: Turbopack build failed with 1 errors:
./app/page.tsx:1:1
Module not found: Can't resolve './x'`,
    "Module not found: Can't resolve './x'",
  ],
  [
    'Next, a page',
    `Error occurred prerendering page "/". Read more: https://nextjs.org/docs/messages/prerender-error
TypeError: Cannot read properties of undefined (reading 'map')
    at x (.next/server/app/page.js:1:2)
Export encountered an error on /page: /, exiting the build.`,
    "TypeError: Cannot read properties of undefined (reading 'map')",
  ],
  [
    'pnpm, its lockfile',
    ` WARN  Ignoring not compatible lockfile at /build/pnpm-lock.yaml
 ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile" because pnpm-lock.yaml is not up to date with package.json`,
    'ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile" because pnpm-lock.yaml is not up to date with package.json',
  ],
  [
    'pnpm, a script',
    `> tsc
src/a.ts(1,1): error TS1005: ';' expected.
 ELIFECYCLE  Command failed with exit code 2.`,
    "src/a.ts(1,1): error TS1005: ';' expected.",
  ],
  [
    'npm, versions that do not fit',
    `npm error code ERESOLVE
npm error ERESOLVE unable to resolve dependency tree
npm error
npm error While resolving: site@1.0.0`,
    'ERESOLVE unable to resolve dependency tree',
  ],
  [
    'npm, a script of a dependency',
    `npm error code 1
npm error path /build/node_modules/native
npm error command failed
npm error command sh -c node-gyp rebuild
npm error gyp info it worked if it ends with ok
npm error gyp ERR! find Python You need to install the latest version of Python.`,
    'gyp ERR! find Python You need to install the latest version of Python.',
  ],
  [
    'Yarn',
    `➤ YN0000: ┌ Resolution step
➤ YN0028: │ The lockfile would have been modified by this install, which is explicitly forbidden.
➤ YN0000: · Failed with errors in 0s 51ms`,
    '➤ YN0028: │ The lockfile would have been modified by this install, which is explicitly forbidden.',
  ],
  [
    'Python',
    'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nModuleNotFoundError: No module named \'x\'',
    "ModuleNotFoundError: No module named 'x'",
  ],
]

describe('the line that matters', () => {
  test.each([...printed, ...written])('of %s', (_tool, output, line) => {
    const found = find(output)!
    expect(found.line).toBe(line)
    expect(found.isError).toBe(true)
    expect(output.split('\n')[found.position - 1]).toContain(line)
    expect(found.excerpt).toContain(line)
  })

  test.each(['/build/server.js:3', 'file:///build/server.js:3'])(
    'is shown with the source that Node prints: %s',
    (place) => {
      const thrown = `${place}\n  return cfg.port\n             ^\n\nTypeError: Cannot read properties of undefined`
      expect(find(`starting\n${thrown}\n${frames}`)!.excerpt).toBe(`${thrown}\n${frames}`)
    },
  )

  test.each([
    ['is the last one that says something', 'Checking 3 files\n3 problems\n\n', '3 problems'],
    ['is no frame and no brace', 'it broke\n    at x (y.js:1:1)\n}\n', 'it broke'],
  ])('of an unknown program %s', (_what, output, line) => {
    expect(find(output)).toMatchObject({ line, isError: false })
    // Unless what followed is not in the log.
    expect(findErrorLine(linesOf(output), false)).toBeNull()
  })

  test.each(['', '\n\n', '> site@1.0.0 build\n> node -e "process.exit(2)"\n'])('is missing in %j', (output) => {
    expect(find(output)).toBeNull()
  })

  test('has its number in the log, and is shown with those around it, in bounded length', () => {
    const before = Array.from({ length: 2_000 }, (_, index) => `line ${index}`).join('\n')
    const after = Array.from({ length: 50 }, () => 'x'.repeat(9_000)).join('\n')
    const found = findErrorLine(linesOf(`${before}\nError: ${'y'.repeat(9_000)}\n${after}`, 5))!
    expect(found.position).toBe(2_005)
    expect(found.line).toHaveLength(300)
    expect(found.excerpt.split('\n').slice(0, 2)).toEqual(['line 1998', 'line 1999'])
    expect(found.excerpt.length).toBeLessThanOrEqual(2_000)
  })

  test.each([
    ...['Error: ', 'error TS1', 'npm error ', '[A', 'ERR_PNPM_', '➤ YN00', '    at ', ' '],
    ...['ERROR in ./a ', './', '~~^|', 'fatal', 'AError', 'Failed to compile. '],
  ])('is found in linear steps where %j is repeated', async (part) => {
    const work = (size: number) => {
      const text = part.repeat(100)
      counting.findErrorLine(Array.from({ length: size }, (_, seq) => ({ seq, text })))
    }
    await takesLinearSteps(16, work)
    const long = (size: number) => counting.findErrorLine([{ seq: 1, text: part.repeat(size) }])
    await takesLinearSteps(16, long)
  })
})
