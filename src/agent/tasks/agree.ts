import type { GoAnswer, GoRequest } from '../../api/grant.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import { judgeGo } from '../decide/grants.ts'
import type { Grants } from '../state/grants.ts'
import type { Present } from './present.ts'

/** Answers the requests of other nodes to take a slot. One request at a time: a pod may have grants of two slots. */
export type Agree = (from: string, request: GoRequest) => Promise<GoAnswer>

/** @param isReady false: this agent does not know yet which memory this node keeps. */
export function createAgree({
  present,
  grants,
  isReady,
  clock,
  log,
}: {
  readonly present: Pick<Present, 'look' | 'snapshot'>
  readonly grants: Grants
  readonly isReady: () => boolean
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
}): Agree {
  let last: Promise<unknown> = Promise.resolve()

  const answer = async (from: string, request: GoRequest): Promise<GoAnswer> => {
    if (!isReady()) return 'Later'
    // The latest Lease counts, not that of the last pass.
    present.look()
    const { snapshot } = present
    const { slot, epoch, number } = request
    const name = slotName(slot)
    const judged = judgeGo(snapshot, request, from, grants.view.records.get(name))
    if (judged === 'AcceptedBefore') return 'Accepted'
    const about = { slot: name, from, number }
    const common = { slot, epoch, number, role: 'Asked', at: clock.now() } as const
    switch (judged.answer) {
      case 'Later':
        log.info({ ...about, why: judged.why }, 'a grant cannot be used yet')
        return 'Later'
      case 'Refused': {
        const known = grants.view.records.get(name)
        const isKnown = known?.epoch === epoch && known.number >= number
        const heir = { name: '', uid: request.uid, node: snapshot.node, ip: undefined }
        // The refusal outlives this agent before any report or answer says so.
        if (!isKnown && (snapshot.epochs.get(name) ?? 0) === epoch)
          await grants.write({ ...common, heir, answer: 'Refused' })
        log.warn({ ...about, why: judged.why }, 'a grant is refused')
        return 'Refused'
      }
      case 'Accepted': {
        const { pod, atLeast, isAnnounced } = judged
        const heir = { name: pod.name, uid: pod.uid, node: snapshot.node, ip: pod.ip }
        const more = { ...(atLeast && { atLeast }), ...(isAnnounced && { isAnnounced: true as const }) }
        await grants.write({ ...common, heir, answer: 'Accepted', ...more })
        log.info({ ...about, pod: pod.name }, 'a grant is used: the pod takes the slot')
        return 'Accepted'
      }
    }
  }

  return (from, request) => {
    const next = last.catch(() => undefined).then(() => answer(from, request))
    last = next
    return next
  }
}
