import { expect, it } from 'vitest'
import { environmentCaveats } from './environment.ts'

const fieldRef = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
const caveats = (container: object, saved = ['app']) =>
  environmentCaveats({ spec: { containers: [{ name: 'app', ...container }] } }, saved)
const message = (container: object) => caveats(container)[0]?.message

it.each([
  ['metadata.name', 'gethostname'],
  ['metadata.uid', 'downwardAPI'],
  ['status.podIP', 'getifaddrs'],
  ['status.podIPs', 'getifaddrs'],
  ['spec.nodeName', 'read it from the API server'],
  ['status.hostIP', 'read it from the API server'],
  ['status.hostIPs', 'read it from the API server'],
])('D13.environment: a variable of %s is named with the way out', (field, way) => {
  expect(caveats({ env: [fieldRef('MINE', field)] })).toEqual([
    { reason: 'EnvironmentOfDeadPod', message: expect.stringContaining(way) },
  ])
  expect(message({ env: [fieldRef('MINE', field)] })).toContain(
    `container app: after a failover its memory still has MINE (${field})`,
  )
})

it('so is one of a resource', () => {
  const env = [{ name: 'ROOM', valueFrom: { resourceFieldRef: { resource: 'limits.memory' } } }]
  expect(message({ env })).toContain('ROOM (limits.memory)')
})

it('what is the same in each pod of the set is not', () => {
  const env = [
    fieldRef('SPACE', 'metadata.namespace'),
    fieldRef('ACCOUNT', 'spec.serviceAccountName'),
    fieldRef('APP', "metadata.labels['app']"),
    { name: 'PLAIN', value: 'x $(OTHER)' },
    { name: 'SECRET', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
  ]
  expect(caveats({ env })).toEqual([])
  expect(caveats({})).toEqual([])
})

it('a variable that is made of another one is as old; a doubled dollar makes none', () => {
  const env = [
    fieldRef('POD', 'metadata.name'),
    { name: 'URL', value: 'http://$(POD):80' },
    { name: 'TWICE', value: '$(URL)/a' },
    { name: 'TEXT', value: '$$(POD)' },
  ]
  expect(message({ env })).toContain('POD (metadata.name), URL (metadata.name), TWICE (metadata.name) of')
  expect(message({ env })).not.toContain('TEXT')
})

it('the last of a name counts', () => {
  expect(caveats({ env: [fieldRef('A', 'metadata.name'), { name: 'A', value: 'fixed' }] })).toEqual([])
})

it('arguments that have it say so', () => {
  const env = [fieldRef('POD', 'metadata.name'), fieldRef('NODE', 'spec.nodeName')]
  expect(message({ env, args: ['--name', '$(POD)'] })).toContain(
    'POD, also in its arguments, (metadata.name), NODE (spec.nodeName)',
  )
  expect(message({ env, command: ['sh', '-c', 'echo $$(POD)'] })).not.toContain('arguments')
})

it('a container that is not saved starts anew with an environment of its own', () => {
  expect(caveats({ env: [fieldRef('POD', 'metadata.name')] }, ['other'])).toEqual([])
})
