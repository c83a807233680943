// Lists of deployments by filter, in SQL: the ids of a page.
import { byOrder, facetedPage, pageIn } from '../../platform/database/facet-statements.ts'
import { booleanArray, optional, statement, text, textArray } from '../../platform/database/statement.ts'

type Owner = 'account' | 'project'

const ownersIn = { owners: textArray(), ...pageIn }
const filteredIn = { states: textArray(), productions: booleanArray(), ...pageIn }
const out = { id: text() }

/** Whatever its state and ref. */
export const deploymentPage = byOrder((order) =>
  statement(`deployments.page.${order}`, {
    reason: 'lateral join',
    in: ownersIn,
    out,
    sql: (p) => facetedPage('deployment', order, { project_id: p.owners }, p),
  }),
)

const filteredPage = (owner: Owner) =>
  byOrder((order) =>
    statement(`deployments.page.${owner}.${order}`, {
      reason: 'lateral join',
      in: { ...ownersIn, ...filteredIn },
      out,
      sql: (p) =>
        facetedPage('deployment', order, { [`${owner}_id`]: p.owners, state: p.states, production: p.productions }, p),
    }),
  )

const pageOfRef = (owner: Owner) =>
  byOrder((order) =>
    statement(`deployments.page.${owner}.ref.${order}`, {
      reason: 'lateral join',
      in: { ...ownersIn, ...filteredIn, refs: textArray() },
      out,
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

/** By the beginning of the hash. The index has its first seven digits, which few commits share. */
export const deploymentPageOfCommit = byOrder((order) =>
  statement(`deployments.page.commit.${order}`, {
    reason: 'lateral join',
    in: {
      accountIds: textArray(),
      ...filteredIn,
      commit: text(),
      projectIds: optional(textArray()),
      ref: optional(text()),
    },
    out,
    sql: (p) =>
      facetedPage(
        'deployment',
        order,
        {
          account_id: p.accountIds,
          'left(commit, 7)': `ARRAY[left(${p.commit}, 7)]`,
          state: p.states,
          production: p.productions,
        },
        {
          ...p,
          further: `starts_with(commit, ${p.commit}) AND (${p.ref} IS NULL OR ref = ${p.ref})
            AND (${p.projectIds} IS NULL OR project_id = ANY(${p.projectIds}))`,
        },
      ),
  }),
)
