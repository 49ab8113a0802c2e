import { until } from '../playground/until.ts'
import type { Api } from '../src/kube/api.ts'
import { type Deployment, deployments, leases, type Pod, pods } from '../src/kube/resources.ts'
import { isLeaving, isReady } from './observe/state.ts'

export const operatorNamespace = 'understudy-system'
export const operatorUser = 'system:serviceaccount:understudy-system:understudy-operator'
export const operatorName = 'understudy-operator'
const ref = { namespace: operatorNamespace, name: operatorName }
const selector = 'app.kubernetes.io/component=operator'

/** The operator under test: two replicas, of which one leads. */
export interface Operator {
  /**
   * Returns the pod of the process that holds the Lease.
   * @throws Error if no process holds it
   */
  leader(): Promise<Pod>
  /** Returns all its pods except those being deleted. */
  pods(): Promise<readonly Pod[]>
  /** Waits until all replicas are Ready and one of them leads. */
  settled(): Promise<Pod>
}

/**
 * Starts fresh replicas that log each pass (`--log-level=debug`); controller time is read from that log.
 * @returns the operator, and a function that restores its arguments
 */
export async function startOperator(
  api: Api,
  signal: AbortSignal,
): Promise<{ operator: Operator; restore: (signal: AbortSignal) => Promise<void> }> {
  const before = await api.get(deployments, ref, { signal })
  const args = argsOf(before)
  const flag = '--log-level=debug'
  const restart = (to: readonly string[], within: AbortSignal) =>
    api.patch(
      deployments,
      ref,
      {
        type: 'strategic',
        body: {
          spec: {
            template: {
              metadata: { annotations: { 'understudy-bench/started': new Date().toISOString() } },
              spec: { containers: [{ name: 'operator', args: to }] },
            },
          },
        },
      },
      { signal: within },
    )
  await restart([...args.filter(arg => !arg.startsWith('--log-level')), flag], signal)
  const operator = operatorOf(api, signal)
  await rolledOut(api, signal)
  await operator.settled()
  return {
    operator,
    restore: async within => {
      await restart(args, within)
      await rolledOut(api, within)
    },
  }
}

function argsOf(deployment: Deployment): readonly string[] {
  const container = deployment.spec?.template.spec?.containers.find(({ name }) => name === 'operator')
  if (container?.args === undefined)
    throw new Error(`Deployment ${operatorName} has no container "operator" with args`)
  return container.args
}

const patience = { patienceMs: 120_000, pollMs: 500 }

async function rolledOut(api: Api, signal: AbortSignal): Promise<void> {
  const isRolledOut = async () => {
    const { metadata, spec, status } = await api.get(deployments, ref, { signal })
    const wanted = spec?.replicas ?? 1
    return (
      (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0) &&
      status?.updatedReplicas === wanted &&
      status.replicas === wanted &&
      status.availableReplicas === wanted
    )
  }
  await until(`Deployment ${operatorName} is rolled out`, isRolledOut, { ...patience, signal })
}

function operatorOf(api: Api, signal: AbortSignal): Operator {
  const all = async () => {
    const { items } = await api.list(
      pods,
      { namespace: operatorNamespace, labelSelector: selector },
      { signal },
    )
    return items.filter(pod => !isLeaving(pod))
  }
  const leader = async () => {
    const lease = await api.get(leases, ref, { signal })
    const holder = holderPod(lease.spec?.holderIdentity)
    const pod = (await all()).find(({ metadata }) => metadata.name === holder)
    if (pod === undefined)
      throw new Error(`no operator leads; the Lease names ${lease.spec?.holderIdentity || 'no holder'}`)
    return pod
  }
  return {
    leader,
    pods: all,
    async settled() {
      const readyLeader = async () => {
        const found = await all()
        if (found.length < 2 || !found.every(isReady)) return undefined
        try {
          return await leader()
        } catch {
          // Between two terms: retry until the time is over.
          return undefined
        }
      }
      return until('two operators are Ready and one leads', readyLeader, { ...patience, signal })
    },
  }
}

/** Identities are `<pod>_<random>`. */
export function holderPod(identity: string | undefined): string | undefined {
  return identity?.split('_')[0]
}
