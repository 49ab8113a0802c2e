/** A pod at a version: enough to write to it with preconditions. */
export interface PodRef {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}
