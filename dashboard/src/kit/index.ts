// Everything a screen needs: `import { Panel, useQuery, call } from '../kit/index.ts'`.
export { Act, useAct } from './act.tsx'
export {
  type AnswerOf,
  BerthError,
  berth,
  call,
  callAuth,
  callPath,
  type ItemOf,
  type Schemas,
} from './api.ts'
export type { Call, Query } from './calls.ts'
export { type List, useList, useQuery } from './data.ts'
export { Confirm, ConfirmButton, DeletePanel, Dialog, type DialogState, useDialog } from './dialog.tsx'
export { describeError, Empty, Loaded, ProblemView, toast, toastError } from './feedback.tsx'
export { Check, Field, Form, fieldErrors, Select, type Values, valuesOf } from './form.tsx'
export { type Event, live, useEvents } from './live.ts'
export { Log, type LogRow } from './log.tsx'
export { Bar, Bytes, bytes, Facts, Num, num, shortCommit, Used } from './numbers.tsx'
export { Copy, CopyLine, Curl, copy, Panel, Tabs, Top } from './panel.tsx'
export { createPasskey, hasPasskeys, passkeyProblem, usePasskey } from './passkeys.ts'
export { Plot, type Series, Spark } from './plot.tsx'
export { currentUrl, go, type Params, useParam, useTitle } from './router.tsx'
export { access, may, me, type Role, readMe, returnUrl, saveReturnUrl, signOut, takeReturnUrl } from './session.ts'
export { DeploymentState, DomainState, domainState, State, type Tone } from './state.tsx'
export { type Column, ListPage, ListTable, More, Table } from './table.tsx'
export { Countdown, clockOf, duration, Elapsed, now, roughly, Time, utc } from './time.tsx'
