import type { Save } from './saves.ts'

/** Saves and brings back the files that belong to a pod's memory. */
export interface Files {
  /** @throws AgentError LayerFailed */
  save(what: Save, deadlineMs: number, signal: AbortSignal): Promise<void>
  /** Makes the place that `what` names hold what was saved, and nothing else. @throws AgentError LayerFailed */
  apply(what: Save, deadlineMs: number, signal: AbortSignal): Promise<void>
}
