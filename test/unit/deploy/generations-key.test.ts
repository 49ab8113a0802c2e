import { expect, test } from 'vitest'
import { generationsKey } from '../../../src/api/generations-key.ts'
import { manifestsBelow, text } from './manifests.ts'

interface Rule {
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

const objects = await manifestsBelow('deploy/agent')
const named = (kind: string, name: string) =>
  objects.find(object => object.kind === kind && object.metadata.name === name)

/** Every rule about Secrets, with its role. */
const aboutSecrets = objects.flatMap(({ kind, metadata, ...rest }) =>
  ((rest['rules'] ?? []) as readonly Rule[])
    .filter(({ resources }) => resources.includes('secrets'))
    .map(({ resourceNames, verbs }) => ({ role: `${kind} ${metadata.name}`, resourceNames, verbs })),
)

test('D10.least: agents read one Secret by name, the operator makes it and cannot read it, and nobody lists any', () => {
  expect(aboutSecrets).toEqual([
    { role: 'Role understudy-agent', resourceNames: [generationsKey.secret], verbs: ['get'] },
    { role: 'Role understudy-generations-key-maker', resourceNames: undefined, verbs: ['create'] },
  ])
  expect(named('RoleBinding', 'understudy-generations-key-maker')?.['subjects']).toEqual([
    { kind: 'ServiceAccount', name: 'understudy-operator', namespace: 'understudy-system' },
  ])
  expect(named('RoleBinding', 'understudy-agent')?.['subjects']).toEqual([
    { kind: 'ServiceAccount', name: 'understudy-agent', namespace: generationsKey.namespace },
  ])
})

test('both rights have their caller in the code', async () => {
  expect(await text('src/operator/generations-key.ts')).toMatch(/api\.create\(secrets/)
  expect(await text('src/agent/storage/agents-half.ts')).toMatch(/api\.get\(secrets/)
})
