/** Rules of sets that keep memory, in CEL; the same as in src/api/memory-rules.ts. */
import { orWarm, type refusals } from '../errors.ts'
import { dangerousPattern, diskVolumes, hugePages } from '../memory-rules.ts'
import { holdPath, holdVolume, probeKinds } from '../pod-contract.ts'
import type { Schema } from './build.ts'
import { specRule } from './spec-rule.ts'

/** Kinds that always keep memory have no mode. */
const withoutWarm = (message: string) => message.replace(`, or ${orWarm}`, '')

const pod = 'self.template.spec'
const liveness = 'has(self.failover.liveness)'
const pullsState = "has(self.checkpoint) && has(self.checkpoint.source) && self.checkpoint.source == 'http'"
export const keepsMemory =
  `has(self.checkpoint) && !(${pullsState}) && ` +
  "!(has(self.hotBackup) && has(self.hotBackup.mode) && self.hotBackup.mode == 'Warm')"

const isTrue = (field: string) => `(has(${pod}.${field}) && ${pod}.${field})`
const named = (list: string) =>
  `(has(${pod}.${list}) && ${pod}.${list}.exists(it, it.name == '${holdVolume}'))`
const someContainer = (condition: string) => `${pod}.containers.exists(it, ${condition})`

type Code = keyof typeof refusals

/** Refuses templates that meet the condition, in sets that keep memory. */
const inMemorySets = (code: Code, condition: string) => specRule(code, `!(${keepsMemory}) || !(${condition})`)

/** Refuses templates whose memory cannot be saved, or not be restored in another pod. */
export const refusedTemplates = (
  refused = (code: Code, condition: string): Schema => specRule(code, `!(${condition})`, withoutWarm),
): readonly Schema[] => [
  refused('MemoryOnHost', ['hostNetwork', 'hostPID', 'hostIPC'].map(isTrue).join(' || ')),
  refused('MemoryOfSharedProcesses', isTrue('shareProcessNamespace')),
  refused('MemoryOfUserNamespace', `has(${pod}.hostUsers) && !${pod}.hostUsers`),
  refused(
    'MemoryOfPrivileged',
    ['containers', 'initContainers']
      .map(
        list =>
          `(has(${pod}.${list}) && ${pod}.${list}.exists(it, has(it.securityContext) && ` +
          '((has(it.securityContext.privileged) && it.securityContext.privileged) || ' +
          '(has(it.securityContext.capabilities) && has(it.securityContext.capabilities.add) && ' +
          `it.securityContext.capabilities.add.exists(name, name.matches('${dangerousPattern}'))))))`,
      )
      .join(' || '),
  ),
  refused('MemoryOnTerminal', someContainer('has(it.tty) && it.tty')),
  refused(
    'MemoryProbedElsewhere',
    someContainer(
      probeKinds
        .flatMap(probe => ['httpGet', 'tcpSocket'].map(handler => `it.${probe}.${handler}`))
        .map(field => `(has(${field.replace(/\.\w+$/, '')}) && has(${field}) && has(${field}.host))`)
        .join(' || '),
    ),
  ),
  refused(
    'MemoryOfDevices',
    someContainer(
      'has(it.volumeDevices) || (has(it.resources) && (has(it.resources.claims) || ' +
        "(has(it.resources.limits) && it.resources.limits.exists(name, name.contains('/')))))",
    ),
  ),
  refused('MemoryBesideClaim', `has(${pod}.volumes) && ${pod}.volumes.exists(it, has(it.ephemeral))`),
  refused(
    'MemoryBesideDisk',
    `has(${pod}.volumes) && ${pod}.volumes.exists(it, ${diskVolumes.map(kind => `has(it.${kind})`).join(' || ')})`,
  ),
  refused(
    'MemoryOfHugePages',
    `${someContainer(`has(it.resources) && has(it.resources.limits) && it.resources.limits.exists(name, name.startsWith('${hugePages}'))`)} || ` +
      `(has(${pod}.volumes) && ${pod}.volumes.exists(it, has(it.emptyDir) && has(it.emptyDir.medium) && it.emptyDir.medium.startsWith('HugePages')))`,
  ),
  refused(
    'MemoryBelowExpression',
    someContainer('has(it.volumeMounts) && it.volumeMounts.exists(mount, has(mount.subPathExpr))'),
  ),
  refused('MemoryOfRestartRules', someContainer('has(it.restartPolicy) || has(it.restartPolicyRules)')),
  refused('HoldNameReserved', [named('volumes'), named('containers'), named('initContainers')].join(' || ')),
  refused(
    'HoldPathTaken',
    // Rules about paths below it, and about init containers, cost more than the API server allows. The operator refuses
    // those.
    someContainer(
      'has(it.volumeMounts) && it.volumeMounts.exists(mount, ' +
        `mount.mountPath == '${holdPath}' || mount.name == '${holdVolume}')`,
    ),
  ),
]

/** `OnFailure` is for a pod with one container without livenessProbe, if also this condition of its kind holds. */
export const restartPolicyRule = (condition: string): Schema =>
  specRule(
    'RestartPolicyNotAlways',
    `!has(${pod}.restartPolicy) || ${pod}.restartPolicy == 'Always' || ` +
      `(${condition} && size(${pod}.containers) == 1 && !has(${pod}.containers[0].livenessProbe))`,
  )

/** Rules of `checkpoint` and `failover` that hold for every kind with these fields. */
export const checkpointRules = (): readonly Schema[] => [
  specRule(
    'NodeTimeoutOutOfRange',
    '!has(self.failover) || !has(self.failover.nodeTimeout) || ' +
      "(duration(self.failover.nodeTimeout) >= duration('1s') && duration(self.failover.nodeTimeout) <= duration('60s'))",
  ),
  specRule(
    'IntervalOutOfRange',
    '!has(self.checkpoint) || !has(self.checkpoint.interval) || ' +
      "(duration(self.checkpoint.interval) >= duration('200ms') && duration(self.checkpoint.interval) <= duration('1h'))",
  ),
  specRule(
    'CheckpointContainerUnknown',
    `!has(self.checkpoint) || !has(self.checkpoint.containers) || self.checkpoint.containers.all(name, ${pod}.containers.exists(it, it.name == name))`,
  ),
  specRule(
    'LivenessWithoutProbe',
    `!${liveness} || ${someContainer('has(it.livenessProbe) && !has(it.livenessProbe.exec)')}`,
  ),
]

export const memoryRules = (): readonly Schema[] => [
  ...refusedTemplates(inMemorySets),
  ...checkpointRules(),
  specRule(
    'ModeWithoutCheckpoint',
    "has(self.checkpoint) || !has(self.hotBackup) || !has(self.hotBackup.mode) || self.hotBackup.mode == 'Warm'",
  ),
  specRule(
    'StateLossWithoutCheckpoint',
    'has(self.checkpoint) || !has(self.updateStrategy) || !has(self.updateStrategy.allowStateLoss) || !self.updateStrategy.allowStateLoss',
  ),
  specRule(
    'StateLossWithoutRoll',
    "!has(self.updateStrategy) || !has(self.updateStrategy.allowStateLoss) || !self.updateStrategy.allowStateLoss || (has(self.updateStrategy.type) && self.updateStrategy.type == 'RollingUpdate')",
  ),
  specRule('HttpSourceIncomplete', `!(${pullsState}) || has(self.checkpoint.http)`),
  specRule('HttpSourceUnused', `!has(self.checkpoint) || !has(self.checkpoint.http) || (${pullsState})`),
  specRule(
    'HttpSourceWithMode',
    `!(${pullsState}) || !has(self.hotBackup) || !has(self.hotBackup.mode) || self.hotBackup.mode == 'Warm'`,
  ),
  specRule('HttpSourceOnHost', `!(${pullsState}) || !${isTrue('hostNetwork')}`),
  specRule('HttpSourceWithLiveness', `!(${pullsState}) || !${liveness}`),
  specRule('HttpSourceWithSuspend', `!(${pullsState}) || !has(self.suspend) || !self.suspend`),
  specRule('CloneWithoutCheckpoint', `!has(self.cloneFrom) || (${keepsMemory})`),
  specRule('LivenessWithoutCheckpoint', `!${liveness} || has(self.checkpoint)`),
]
