import { describe, expect, it } from 'vitest'
import { understudy } from './keep-memory.ts'

const waker = { image: 'waker:1', resources: { cpu: '10m', memory: '32Mi' } }
const spec = {
  containers: [{ name: 'app', image: 'app' }],
  initContainers: [
    { name: 'migrate', image: 'migrate', resources: { limits: { cpu: '1' } } },
    { name: 'proxy', image: 'proxy', restartPolicy: 'Always' },
  ],
}
const of = (
  ...options: Parameters<typeof understudy> extends [unknown, unknown, unknown, ...infer R] ? R : never
) => understudy(spec, ['app'], waker, ...options)
const names = (pod: ReturnType<typeof of>) => pod.initContainers?.map(({ name }) => name)

describe('an understudy', () => {
  it('has the init containers of its template behind the installer of the waker', () =>
    expect(names(of())).toEqual(['understudy-hold', 'migrate', 'proxy']))

  it('can skip those that end, with their resources; the installer and sidecars stay', () => {
    const moved = of({ skipInit: true })
    expect(names(moved)).toEqual(['understudy-hold', 'proxy'])
    expect(moved.initContainers?.[0]).not.toHaveProperty('resources')
    expect(of().initContainers?.[0]).toHaveProperty('resources')
  })

  it.each([
    ['default', undefined, { seccompProfile: { type: 'RuntimeDefault' } }],
    ['default', { runAsUser: 1 }, { runAsUser: 1, seccompProfile: { type: 'RuntimeDefault' } }],
    ['asSource', undefined, undefined],
    ['asSource', { runAsUser: 1 }, { runAsUser: 1 }],
    ...(['default', 'asSource'] as const).map(seccomp => {
      const own = { seccompProfile: { type: 'Localhost', localhostProfile: 'p.json' } }
      return [seccomp, own, own] as const
    }),
  ] as const)('with seccomp %s in a spec with %o has %o', (seccomp, securityContext, expected) => {
    const source = { ...spec, ...(securityContext && { securityContext }) }
    expect(understudy(source, ['app'], waker, { seccomp }).securityContext).toEqual(expected)
  })
})
