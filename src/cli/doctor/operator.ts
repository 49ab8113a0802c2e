import { isKubeError } from '../../kube/errors.ts'
import { about, type Finding } from './finding.ts'
import type { Installation, Places } from './installation.ts'
import { unreadable } from './unreadable.ts'
import { tagOf } from './version.ts'

const { ok, broken, note } = about('operator')

type Seen = Pick<Installation, 'operator' | 'leadership' | 'wakeKey' | 'version' | 'identity'>

/** Checks that an operator leads, that another could follow, and that cold backups can be woken. */
export function operatorFindings(seen: Seen, { operatorNamespace }: Places): readonly Finding[] {
  return [
    deployment(seen, operatorNamespace),
    leadership(seen, operatorNamespace),
    wakeKey(seen, operatorNamespace),
  ]
}

function deployment({ operator, version }: Seen, namespace: string): Finding {
  const what = 'deployment'
  if (!operator.ok) {
    if (!isKubeError(operator.error, 'NotFound')) return unreadable('operator', what, operator.error)
    return broken(
      what,
      `there is no Deployment understudy-operator in ${namespace}`,
      'run `kubectl apply -k deploy/`, or name its namespace with --operator-namespace',
    )
  }
  const { spec, status } = operator.value
  const wanted = spec?.replicas ?? 1
  const available = status?.availableReplicas ?? 0
  const image = spec?.template.spec?.containers[0]?.image ?? ''
  const tag = tagOf(image)
  const which = tag === undefined ? image : `version ${tag}`
  if (available === 0)
    return broken(
      what,
      `none of ${wanted} replicas is available: failures are not repaired`,
      `run \`kubectl -n ${namespace} describe deployment,pod\`, and read the logs of the pods`,
    )
  if (available < wanted)
    return broken(
      what,
      `${available} of ${wanted} replicas are available (${which}): a change of the leader may have to wait for a new pod`,
      `run \`kubectl -n ${namespace} describe pod\``,
    )
  if (tag !== undefined && tag !== version)
    return note(
      what,
      `${available} of ${wanted} replicas are available; ${which}, but this program is version ${version}`,
      'use the kubectl-understudy of the installed version',
    )
  return ok(what, `${available} of ${wanted} replicas are available, ${which}`)
}

function leadership({ leadership: lease, identity }: Seen, namespace: string): Finding {
  const what = 'leader'
  if (!lease.ok) {
    if (!isKubeError(lease.error, 'NotFound')) return unreadable('operator', what, lease.error)
    return broken(
      what,
      'there has never been a leader',
      `read \`kubectl -n ${namespace} logs deployment/understudy-operator\``,
    )
  }
  const { holderIdentity, renewTime, leaseDurationSeconds = 15 } = lease.value.spec ?? {}
  const now = identity.ok ? identity.value.now : Date.now()
  // One second for the rounding of the server's time, and one for the duration of a request.
  const isOver = now - Date.parse(renewTime ?? '') > (leaseDurationSeconds + 2) * 1000
  if (!holderIdentity || renewTime === undefined || isOver)
    return broken(
      what,
      holderIdentity ? `${holderIdentity} was the last leader, until ${renewTime}` : 'there is no leader',
      `read \`kubectl -n ${namespace} logs deployment/understudy-operator\``,
    )
  return ok(what, holderIdentity)
}

function wakeKey({ wakeKey: secret }: Seen, namespace: string): Finding {
  const what = 'wake key'
  if (!secret.ok) {
    if (!isKubeError(secret.error, 'NotFound')) return unreadable('operator', what, secret.error)
    return broken(
      what,
      `there is no Secret understudy-wake-key in ${namespace}: no cold backup can be woken`,
      `run \`kubectl -n ${namespace} rollout restart deployment/understudy-operator\` to create one; existing cold backups are replaced when they are needed`,
    )
  }
  // Only the length of the key is checked; its content is never shown.
  const length = Buffer.from(secret.value.data?.['key'] ?? '', 'base64').length
  const before = Buffer.from(secret.value.data?.['previous'] ?? '', 'base64').length
  if (length === 32 && before !== 0 && before !== 32)
    return broken(
      what,
      `Secret understudy-wake-key has a previous key of ${before} bytes instead of 32: the operator does not start with it`,
      `remove it: \`kubectl -n ${namespace} patch secret understudy-wake-key --type json -p '[{"op":"remove","path":"/data/previous"}]'\``,
    )
  return length === 32
    ? ok(what, before === 32 ? 'exists, and so does the previous key' : 'exists')
    : broken(
        what,
        `Secret understudy-wake-key holds ${length} bytes instead of 32`,
        `delete it and restart the operator: \`kubectl -n ${namespace} delete secret understudy-wake-key\``,
      )
}
