/** What to do about a condition that is not as it should be, where its message does not say so itself. */

import { agentErrors } from '../agent/errors.ts'
import type { Condition } from '../api/backuppodset.ts'
import { refusals } from '../api/errors.ts'
import { memoryPermission } from '../api/memory-permission.ts'
import { conditionTypes, reasons } from '../api/reasons.ts'

const doctor = '`kubectl understudy doctor` says what is wrong with which node, and its cure'

const cures: Readonly<Record<string, string>> = {
  [reasons.podsMissing]:
    'look at the pods above that are not in place; `kubectl describe pod` has the words of scheduler and kubelet',
  [reasons.rollingOut]: 'nothing: a changed template is being rolled out',
  [reasons.converging]: 'nothing: the operator is at work',
  [reasons.actionFailed]:
    'the API server refused what the message names: look at quotas, admission policies and priority classes of the namespace',
  [reasons.podsCrashLooping]: '`kubectl logs --previous` of the pods named',
  [reasons.progressDeadlineExceeded]:
    'mend what the message names: image, node, volume or configuration of the pod',
  [reasons.replacementsPaused]:
    'mend what the application needs; delete the failing pod to have another one before',
  [reasons.gateUnreachable]:
    'let the operator reach port 20000 of the pods (`kubectl apply -n NAMESPACE -k deploy/network-policy/`); delete those whose gate has another token',
  [reasons.paused]: 'set spec.paused to false when you want failures to be repaired again',
  [reasons.cacheIncomplete]:
    'let the operator list and watch what the message names: `kubectl apply -k deploy/`, with the kinds of the agents',
  [reasons.noAgents]: doctor,
  [reasons.noNodeReady]: doctor,
  [reasons.nodeNotReady]: doctor,
  [reasons.notSaved]: 'nothing, in the first seconds of a primary; later: the log of the agent on its node',
  [reasons.notStaged]:
    'nothing, in the first seconds; later: the log of the agent on the node of the hot backup',
  [reasons.updateOnDelete]:
    'delete pods of the older template when it suits you, or set updateStrategy.type to RollingUpdate',
  [reasons.rollWaits]:
    'do what the message says of the slot that waits: its memory has to be on another node than its primary, and a hot backup of the new template with it',
  [reasons.updateWouldLoseState]:
    'set updateStrategy.allowStateLoss if the memory may be lost, or take the change of the template back',
  [reasons.memoryNotAllowed]: `\`kubectl label namespace NAME ${memoryPermission.label}=${memoryPermission.value}\`, if its pods may be saved and brought back by agents that are root on their nodes`,
  [reasons.claimNotShared]: 'use a claim that is ReadWriteMany, or emptyDir, or set hotBackup.mode to Warm',
  [reasons.claimMissing]: 'make it, with access mode ReadWriteMany',
  [reasons.claimUnread]: 'let the operator get persistentvolumeclaims',
  [reasons.diskAheadOfMemory]: 'nothing, if the application reads again what it shares',
  [reasons.environmentOfDeadPod]: 'nothing, if the application does not go by these variables',
  [reasons.notOnDisk]: 'see to the disks of the nodes named: until then memory does not outlive them',
  [reasons.pullFailed]:
    'see why the application does not answer at checkpoint.http, and let the operator reach its pods',
  [reasons.stateBudgetExceeded]:
    'let the applications say less, keep fewer slots this way, or start the operator with a larger --state-budget',
  [reasons.fewerCopies]:
    'let the template run on more nodes, lower checkpoint.copies, or set checkpoint.holders: Any',
  [reasons.memoryWaits]:
    'bring the nodes that are named back, or their agents; what they keep is given up only after checkpoint.giveUpAfterSeconds',
  [reasons.stateTooLarge]: 'raise checkpoint.http.maxSize, or have the application say less',
  NotAnswering: 'see why the app does not pass its own probe: only the memory of one that answers is saved',
  NoGeneration: 'nothing, in the first seconds; later: let the agents reach each other on TCP port 9443',
  NoUnderstudy:
    'raise hotBackups, or let pods run on more nodes: an understudy is never on the node of its primary',
  TemplateChanged: 'delete the pods of the older template when you can do without their memory',
  SpecUnreadable: 'install agents of the version of the kinds, or take the change of the spec back',
  Unproven: 'nothing: it is tried once on this node before it counts',
  UnderstudyTooSmall:
    'raise the memory limit of the container: Frozen needs 10 % more than the memory that is saved',
  NotHolding: 'delete the hot backup: it is replaced by one that holds the stage',
  StoreFull:
    "raise limits.memory of the agents' DaemonSet (half of it is what they may keep), or lower checkpoint.keep; where it is the share of the namespace that is taken: --namespace-share of the agents",
}

/** Undefined: the message says it all. */
export function cureOf({ reason, message }: Pick<Condition, 'reason' | 'message'>): string | undefined {
  if (Object.hasOwn(refusals, reason)) return 'change the set as the message says'
  const cure = Object.hasOwn(agentErrors, reason)
    ? agentErrors[reason as keyof typeof agentErrors].cure
    : cures[reason]
  return cure !== undefined && message.includes(cure) ? undefined : cure
}

/** As conditions are when nobody has to do anything. */
const good: Readonly<Record<string, Condition['status']>> = {
  [conditionTypes.ready]: 'True',
  [conditionTypes.progressing]: 'False',
  [conditionTypes.degraded]: 'False',
  [conditionTypes.paused]: 'False',
  [conditionTypes.checkpointReady]: 'True',
}

/** A condition of a type that is not known here is not judged. */
export const isAsItShouldBe = ({ type, status }: Pick<Condition, 'type' | 'status'>): boolean =>
  good[type] === undefined || good[type] === status
