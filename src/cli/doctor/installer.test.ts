import { expect, test } from 'vitest'
import { deployment, healthy, missing, places, schemas, there } from '../testing/installation.ts'
import { examine } from './doctor.ts'
import type { Installation } from './installation.ts'

const told = (over: Partial<Installation>) =>
  examine({ ...healthy, ...over }, places, schemas)
    .map(({ message, cure = '' }) => `${message} ${cure}`)
    .join('\n')

function released(): Installation['operator'] {
  const operator = deployment(2)
  if (!operator.ok) throw new Error('there is one')
  const annotations = { 'meta.helm.sh/release-name': 'mine' }
  return there({ ...operator.value, metadata: { ...operator.value.metadata, annotations } })
}

const trouble = { crds: { ...healthy.crds, nodereports: missing } }

test('the advice for a release of Helm names Helm, and not kustomize', () => {
  const text = told({ ...trouble, operator: released() })
  expect(text).toContain('run `helm upgrade mine CHART --reset-then-reuse-values`')
  expect(text).toContain('the value `podMigrationJobs.enabled=true` of the chart adds it')
  expect(text).not.toMatch(/kubectl apply -k|overlay/)
})

test('the advice for an installation with kustomize stays', () => {
  const text = told(trouble)
  expect(text).toContain('run `kubectl apply -k deploy/`')
  expect(text).toContain('an overlay with `components: [../deploy/pod-migration-jobs]` adds it')
  expect(text).not.toContain('helm')
})
