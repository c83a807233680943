// The measurements of the group deploy.
import type { Bench, Figure } from '../group.ts'

export const figures = {
  first: {
    what: 'POST to READY, first build of a Next.js server, time',
    against: '`git clone`, `npm install`, `npm run build`',
  },
  second: { what: 'POST to READY with one page changed, time', against: 'its first build' },
  upload: {
    what: '`berth deploy --no-wait` of 60 files, one of them changed, time',
    against: '`rsync` to a daemon',
    needs: ['rsync'],
  },
  change: { what: 'The same until READY', against: '`rsync` to a daemon', needs: ['rsync'] },
} satisfies Record<string, Figure>

export type DeployBench = Bench<keyof typeof figures>
