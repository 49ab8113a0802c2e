import type { Manager } from '../kube/manager.ts'
import type { PhaseEventsOptions } from '../phase-events/phase-events.ts'

export const phaseEventsOf = (manager: Pick<Manager, 'election' | 'recorder'>): PhaseEventsOptions => ({
  recorder: manager.recorder(),
  leads: manager.election.isLeader,
})
