/** Cures for conditions that are not as they should be, where the message itself gives none. */

import { agentErrors } from '../api/agent-errors.ts'
import { refusals } from '../api/errors.ts'
import { memoryPermission } from '../api/memory-permission.ts'
import { conditionTypes, reasons } from '../api/reasons.ts'
import type { Condition } from '../kube/conditions.ts'

const doctor = 'run `kubectl understudy doctor`: it names each node with a problem, and the cure'

const cures: Readonly<Record<string, string>> = {
  [reasons.podsMissing]:
    'check the pods that are not in place; `kubectl describe pod` shows the messages of the scheduler and the kubelet',
  [reasons.primariesMissing]:
    'no action needed while backups take over; after that, check the pods as for PodsMissing',
  [reasons.rollingOut]: 'no action needed: the operator rolls out a changed template',
  [reasons.converging]: 'no action needed: the operator is working on it',
  [reasons.actionFailed]:
    'check quotas, admission policies and priority classes of the namespace: the API server refused the action in the message',
  [reasons.podsCrashLooping]: 'read `kubectl logs --previous` of the pods named',
  [reasons.progressDeadlineExceeded]:
    'fix the problem in the message: image, node, volume or configuration of the pod',
  [reasons.replacementsPaused]:
    'fix the failure of the application; delete the failing pod to get a new one sooner',
  [reasons.operatorBlind]:
    'look for a fault of the network between the nodes, or between them and the API server; for a node that is off for good, run `kubectl understudy fence NODE`',
  [reasons.gateUnreachable]:
    'let the operator reach port 20000 of the pods (run `kubectl apply -n NAMESPACE -k deploy/network-policy/`); delete the pods whose gate has another token',
  [reasons.paused]: 'set spec.paused to false to resume repairs',
  [reasons.completed]: 'no action needed: delete it once you need neither its pod nor its logs',
  [reasons.suspended]: 'set spec.suspend to false to resume it, with its memory',
  [reasons.suspending]: 'no action needed: the pods are ending',
  [reasons.saving]: 'no action needed: it takes as long as a handover',
  [reasons.savePaused]:
    'no action needed at first; if it happens again, see the logs of the agents of the primary and of the nodes with its copies',
  [reasons.moving]: 'no action needed: it is suspended after the move',
  [reasons.takingOver]: 'no action needed: it is suspended once it serves',
  [reasons.grantOutstanding]: 'no action needed: the agents answer within seconds',
  [reasons.noOtherNode]:
    'let the template run on another node with an agent that has room; to end a pod without a last save, delete it: the state that was saved last is kept',
  [reasons.memoryAtRisk]: 'start the nodes that keep the memory, or their agents; or resume the set now',
  [reasons.memoryLost]: 'resume the set: the slot starts empty',
  [reasons.noCloneSource]:
    'let spec.cloneFrom, or spec.clonePod, name a pod that has memory now, or remove it: then new slots begin empty',
  [reasons.cloneNotSaved]:
    'no action needed in the first seconds; after that, see the condition CheckpointReady of the set with the source',
  [reasons.cloneUnfit]:
    'use the same images, commands, arguments, mounts and security contexts as the source, or remove spec.cloneFrom',
  [reasons.cloneUnsupported]: 'update the agents: the operator may be newer than they are',
  [reasons.cloning]:
    'no action needed: it takes as long as a copy of the memory; if the message has a report of an agent, follow that',
  [reasons.cacheIncomplete]:
    'let the operator list and watch the resources in the message: apply this version once more, with the kinds of the agents',
  [reasons.noAgents]: doctor,
  [reasons.noNodeReady]: doctor,
  [reasons.nodeNotReady]: doctor,
  [reasons.notSaved]:
    'no action needed in the first seconds of a primary; after that, read the log of the agent on its node',
  [reasons.notStaged]:
    'no action needed in the first seconds; after that, read the log of the agent on the node of the hot backup',
  [reasons.updateOnDelete]:
    'delete the pods of the older template when convenient, or set updateStrategy.type to RollingUpdate',
  [reasons.rollWaits]:
    'see the message for the slot that waits: the roll needs its memory and a hot backup of the new template on one node, which is not the node of its primary',
  [reasons.updateWouldLoseState]:
    'set updateStrategy.allowStateLoss if you accept the loss of the memory, or revert the change of the template',
  [reasons.memoryNotAllowed]: `run \`kubectl label namespace NAME ${memoryPermission.label}=${memoryPermission.value}\`, if agents, which are root on their nodes, may save and restore its pods`,
  [reasons.claimNotShared]: 'use a ReadWriteMany claim or an emptyDir, or set hotBackup.mode to Warm',
  [reasons.claimMissing]: 'create the claim, with access mode ReadWriteMany',
  [reasons.claimUnread]: 'let the operator get persistentvolumeclaims',
  [reasons.diskAheadOfMemory]: 'no action needed if the application reads shared files again',
  [reasons.environmentOfDeadPod]: 'no action needed if the application does not use these variables',
  [reasons.notOnDisk]:
    'follow the cure that the message names for each node; until then newer memory does not survive a reboot',
  [reasons.pullFailed]:
    'find out why the application does not answer at checkpoint.http, and let the operator reach its pods',
  [reasons.stateBudgetExceeded]:
    'make the states smaller, use checkpoint.source http for fewer slots, or start the operator with a larger --state-budget',
  [reasons.fewerCopies]:
    'let the template run on more nodes, lower checkpoint.copies, or set checkpoint.holders: Any',
  [reasons.memoryWaits]:
    'start the nodes that the message names, or their agents; the operator gives up their memory only after checkpoint.giveUpAfterSeconds',
  [reasons.noPrimary]:
    'see why the pods that the message names could not restore the memory, or why pods that were made for the slot do not run',
  [reasons.stateTooLarge]: 'raise checkpoint.http.maxSize, or make the state smaller',
  NotAnswering:
    'find out why the application fails its probe: memory is saved only while the application answers; if spec.suspend is true, you can also delete the pod: the state that was saved last is kept',
  NoGeneration:
    'no action needed in the first seconds; after that, let the agents reach each other on TCP port 9443',
  NoUnderstudy:
    'raise hotBackups, or let the pods run on more nodes: a hot backup on the node of a primary does not protect that primary',
  TemplateChanged: 'delete the pods of the older template, if you accept the loss of their memory',
  PolicyUnknown: 'install operator and agents of one version, and see that an operator leads',
  Unproven: 'no action needed: the agent verifies one restore on this node first',
  UnderstudyTooSmall:
    'raise the memory limit of the container: Frozen needs 10 % more than the memory that is saved',
  NotHolding: 'delete the hot backup: the operator replaces it with an understudy',
  StoreFull:
    "raise limits.memory of the agents' DaemonSet (agents use half of it for memory), or lower checkpoint.keep; if the namespace has used up its share, raise --namespace-share of the agents",
}

/** Returns the cure for a condition. Undefined: the message says it all. */
export function cureOf({ reason, message }: Pick<Condition, 'reason' | 'message'>): string | undefined {
  if (Object.hasOwn(refusals, reason)) return 'change the set as the message says'
  const cure = Object.hasOwn(agentErrors, reason)
    ? agentErrors[reason as keyof typeof agentErrors].cure
    : cures[reason]
  return cure !== undefined && message.includes(cure) ? undefined : cure
}

/**
 * The statuses of conditions when nothing needs to be done. `Available`, `Reconciling` and `Stalled` are for other tools: the reasons
 * for them are in the others.
 */
const good: Readonly<Record<string, Condition['status']>> = {
  [conditionTypes.ready]: 'True',
  [conditionTypes.progressing]: 'False',
  [conditionTypes.degraded]: 'False',
  [conditionTypes.paused]: 'False',
  [conditionTypes.checkpointReady]: 'True',
  [conditionTypes.cloned]: 'True',
}

/** True also for conditions of an unknown type, which are not judged. */
export const isAsItShouldBe = ({ type, status }: Pick<Condition, 'type' | 'status'>): boolean =>
  good[type] === undefined || good[type] === status

/** The cures for a MigratingPod that is Invalid, by the reason of its condition Ready. */
export const migratingPodCures: Readonly<Record<string, string>> = {
  NameTaken: 'delete the BackupPodSet of that name, or create the MigratingPod under another name',
  SetRefused:
    'change the MigratingPod, or its namespace, as the message says; it is managed as soon as its set is accepted',
  TooManyPods: 'no action needed: the operator deletes the surplus pods',
}
