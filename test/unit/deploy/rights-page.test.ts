import { expect, test } from 'vitest'
import { rightsTable, withRights } from '../../../deploy/rights.ts'
import { text } from './manifests.ts'

test('D10.rights: the page says what the roles say', async () => {
  const page = await text('docs/install.md')
  expect(page).toBe(withRights(page))
})

test('the table has what a reviewer looks for', () => {
  const table = rightsTable()
  expect(table).toContain('| `understudy-operator` | nodes | list, watch, patch | all namespaces |')
  expect(table).toContain('| `understudy-operator` | secrets | create | `understudy-agents` |')
  expect(table).toContain(
    '| `understudy-agent` | secrets named `understudy-generations-key` | get | `understudy-agents` |',
  )
  expect(table).toContain('| role `understudy-edit` |')
})
