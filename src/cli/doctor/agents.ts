import { isKubeError } from '../../kube/errors.ts'
import { about, type Finding } from './finding.ts'
import type { Installation, Places } from './installation.ts'
import { applying, installerOf } from './installer.ts'
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
    const cure = `run ${applying('deploy/agent', installerOf({ operator }))}, or name its namespace with --agent-namespace`
    return memoryWanted
      ? [broken(what, `${message}: no memory is kept, although sets ask for it`, cure)]
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
        `run \`kubectl -n ${agentNamespace} get pods -o wide\`, and read the logs of the agents that are not ready`,
      ),
    )
  else findings.push(ok(what, `${numberReady} of ${desiredNumberScheduled} agents are ready`))
  if (updatedNumberScheduled < desiredNumberScheduled)
    findings.push(
      note(
        'rollout',
        `${updatedNumberScheduled} of ${desiredNumberScheduled} agents have the newest template`,
      ),
    )
  if (tag !== undefined && ofOperator !== undefined && tag !== ofOperator)
    findings.push(
      broken(
        'version',
        `the agents have version ${tag}, the operator ${ofOperator}`,
        'apply deploy/ of one version as a whole',
      ),
    )
  return findings
}
