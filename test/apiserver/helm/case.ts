/** Values that users may set, and the overlays of deploy/ that mean the same. */
import type { Overlay } from '../../../deploy/chart/kustomize.ts'
import { idOf, type KubeObject } from '../../../deploy/chart/merge.ts'

export interface Case {
  readonly title: string
  /** Besides the registry. */
  readonly values?: object
  /** Default: deploy/base. */
  readonly resources?: readonly string[]
  readonly components?: readonly string[]
  /** More of the kustomization. */
  readonly more?: object
  readonly namespace?: string
  /** Changes that no kustomization can express. */
  readonly adjust?: (objects: readonly KubeObject[]) => readonly KubeObject[]
}

export const operator = { kind: 'Deployment', name: 'understudy-operator' }
export const agent = { kind: 'DaemonSet', name: 'understudy-agent' }
export const pod = '/spec/template/spec'
export const container = `${pod}/containers/0`

type Operation = { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
export const add = (path: string, value: unknown): Operation => ({ op: 'add', path, value })
export const replace = (path: string, value: unknown): Operation => ({ op: 'replace', path, value })
export const patch = (target: object, ...operations: readonly Operation[]) => ({
  target,
  patch: JSON.stringify(operations),
})
export const patches = (...all: readonly object[]) => ({ patches: all })

export const without = (test: (object: KubeObject) => boolean) => (objects: readonly KubeObject[]) =>
  objects.filter(object => !test(object))

/** Replaces the names of both namespaces in everything but the name of a policy, which has the name of one of them. */
export const renamed = (operators: string, agents: string) => (objects: readonly KubeObject[]) =>
  objects.map((object): KubeObject => {
    const text = JSON.stringify(object).replaceAll('understudy-system', operators)
    const isPolicy = object.kind.startsWith('ValidatingAdmissionPolicy')
    // In expressions, a name stands between quotes, colons and slashes.
    const pattern = isPolicy ? /(?<=[':])understudy-agents(?=[':/])/g : /\bunderstudy-agents\b/g
    return JSON.parse(text.replaceAll(pattern, agents))
  })

export const args = (...values: readonly string[]) => values.map(value => add(`${container}/args/-`, value))

export const overlayOf = ({ resources = ['base'], components = [], more = {} }: Case): Overlay => ({
  ...{ resources, components },
  ...more,
})

/** Returns what the chart has to contain. Helm makes the namespace of the release. */
export const expectedOf = (
  { adjust = all => all }: Case,
  built: readonly KubeObject[],
): readonly KubeObject[] => adjust(built.filter(object => idOf(object) !== 'Namespace understudy-system'))
