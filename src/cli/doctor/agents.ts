import { isKubeError } from '../../kube/errors.ts'
import { about, type Finding } from './finding.ts'
import type { Installation, Places } from './installation.ts'
import { unreadable } from './unreadable.ts'
import { tagOf } from './version.ts'

const { ok, broken, note } = about('agents')

type Seen = Pick<Installation, 'agents' | 'operator'> & {
  /** At least one set keeps memory. */
  readonly memoryWanted: boolean
}

/** Checks that an agent runs on every node that can have one, in the operator's version. */
export function agentsFindings(seen: Seen, { agentNamespace }: Places): readonly Finding[] {
  const { agents, operator, memoryWanted } = seen
  const what = 'daemonset'
  if (!agents.ok) {
    if (!isKubeError(agents.error, 'NotFound')) return [unreadable('agents', what, agents.error)]
    const message = `there is no DaemonSet understudy-agent in ${agentNamespace}`
    const cure = '`kubectl apply -k deploy/agent`, or say where it is with --agent-namespace'
    return memoryWanted
      ? [broken(what, `${message}: no memory is kept, though sets ask for it`, cure)]
      : [note(what, `${message}; no set asks for memory`)]
  }
  const { spec, status } = agents.value
  const { desiredNumberScheduled = 0, numberReady = 0, updatedNumberScheduled = 0 } = status ?? {}
  const tag = tagOf(spec?.template.spec?.containers[0]?.image ?? '')
  const ofOperator = operator.ok
    ? tagOf(operator.value.spec?.template.spec?.containers[0]?.image ?? '')
    : undefined
  const findings: Finding[] = []
  if (numberReady < desiredNumberScheduled)
    findings.push(
      broken(
        what,
        `${numberReady} of ${desiredNumberScheduled} agents are ready`,
        `\`kubectl -n ${agentNamespace} get pods -o wide\`, and the logs of those that are not`,
      ),
    )
  else findings.push(ok(what, `${numberReady} of ${desiredNumberScheduled} agents are ready`))
  if (updatedNumberScheduled < desiredNumberScheduled)
    findings.push(
      note(
        'rollout',
        `${updatedNumberScheduled} of ${desiredNumberScheduled} agents are of the newest template`,
      ),
    )
  if (tag !== undefined && ofOperator !== undefined && tag !== ofOperator)
    findings.push(
      broken(
        'version',
        `agents are ${tag}, the operator is ${ofOperator}`,
        'apply deploy/ of one version as a whole',
      ),
    )
  return findings
}
