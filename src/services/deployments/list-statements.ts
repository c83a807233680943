// Lists of deployments by filter, in SQL: the ids of a page.
import { byOrder, facetedPage } from '../../platform/facet-statements.ts'
import { booleanArray, int4, statement, text, textArray } from '../../platform/statement.ts'

type Owner = 'account' | 'project'

const ownersIn = { owners: textArray(), after: text(), limit: int4() }
const filteredIn = { ...ownersIn, states: textArray(), productions: booleanArray() }

/** Whatever its state and ref. */
export const deploymentPage = byOrder((order) =>
  statement(`deployments.page.${order}`, {
    reason: 'not in Prisma',
    in: ownersIn,
    out: { id: text() },
    sql: (p) => facetedPage('deployment', order, { project_id: p.owners }, p),
  }),
)

const filteredPage = (owner: Owner) =>
  byOrder((order) =>
    statement(`deployments.page.${owner}.${order}`, {
      reason: 'not in Prisma',
      in: filteredIn,
      out: { id: text() },
      sql: (p) =>
        facetedPage('deployment', order, { [`${owner}_id`]: p.owners, state: p.states, production: p.productions }, p),
    }),
  )

const pageOfRef = (owner: Owner) =>
  byOrder((order) =>
    statement(`deployments.page.${owner}.ref.${order}`, {
      reason: 'not in Prisma',
      in: { ...filteredIn, refs: textArray() },
      out: { id: text() },
      sql: (p) =>
        facetedPage(
          'deployment',
          order,
          { [`${owner}_id`]: p.owners, ref: p.refs, state: p.states, production: p.productions },
          p,
        ),
    }),
  )

export const filteredDeploymentPage = { account: filteredPage('account'), project: filteredPage('project') }
export const deploymentPageOfRef = { account: pageOfRef('account'), project: pageOfRef('project') }
