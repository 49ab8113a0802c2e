import { expect, test } from 'vitest'
import { manifestsBelow } from './manifests.ts'

interface Rules {
  readonly resourceRules: readonly { readonly operations: readonly string[] }[]
}
interface Policy {
  readonly spec: {
    readonly policyName?: string
    readonly matchConstraints?: Rules
    readonly matchResources?: Rules
    readonly paramRef?: { readonly parameterNotFoundAction: string }
  }
}

test('where a policy finds no parameters, which refuses every user, it looks at creations only', async () => {
  const all = await manifestsBelow<Policy>('deploy/admission')
  const strict = all.filter(({ spec }) => spec.paramRef?.parameterNotFoundAction === 'Deny')
  const operations = strict.map(({ metadata, spec: { policyName, matchResources } }) => {
    const policy = all.find(each => each.kind.endsWith('Policy') && each.metadata.name === policyName)
    const rules = matchResources ?? policy?.spec.matchConstraints
    return [metadata.name, rules?.resourceRules.flatMap(rule => rule.operations)]
  })
  expect(operations.length).toBeGreaterThan(0)
  expect(operations.filter(([, of]) => String(of) !== 'CREATE')).toEqual([])
})
