/** Everything that can happen to a cluster, each as data. */

/** Indexes are taken modulo the number of existing objects. */
export type Command =
  /** Nothing happens for a while. */
  | { readonly type: 'wait' }
  /** An app of a primary ends by itself. */
  | { readonly type: 'endApp'; readonly primary: number; readonly container: 'app' | 'side' | 'proxy' }
  /** The app of a primary answers no requests. With `exitsMs`, it exits so long after its agent has noticed. */
  | { readonly type: 'hangApp'; readonly primary: number; readonly forMs: number; readonly exitsMs?: number }
  | { readonly type: 'deletePod'; readonly pod: number; readonly force: boolean }
  /** Every pod with this label `type`, at once. */
  | { readonly type: 'deleteNamed'; readonly of: string; readonly force: boolean }
  | {
      readonly type: 'endAgent'
      readonly node: number
      readonly how: 'stop' | 'kill'
      readonly forMs: number
    }
  | { readonly type: 'pauseAgent'; readonly node: number; readonly forMs: number }
  /** Replaces every agent, one after the other. */
  | { readonly type: 'rollAgents' }
  | {
      readonly type: 'endOperator'
      readonly index: number
      readonly how: 'stop' | 'kill'
      readonly forMs: number
    }
  | { readonly type: 'pauseOperator'; readonly index: number; readonly forMs: number }
  | { readonly type: 'powerOff'; readonly node: number; readonly forMs: number }
  /** Powers off the machine of this primary. */
  | { readonly type: 'losePrimarysNode'; readonly primary: number; readonly forMs: number }
  /** A machine reaches neither the API server nor other machines. */
  | { readonly type: 'cutNode'; readonly node: number; readonly forMs: number; readonly apiOnly: boolean }
  /** A machine reaches the API server, but not the other machines. */
  | { readonly type: 'cutPeers'; readonly node: number; readonly forMs: number }
  /** Datagrams from one machine to another are lost, and no connection between the two works. */
  | {
      readonly type: 'cutLink'
      readonly from: number
      readonly to: number
      readonly both: boolean
      readonly forMs: number
    }
  /** As `cutNode`, for the machine of this primary. */
  | {
      readonly type: 'cutPrimarysNode'
      readonly primary: number
      readonly forMs: number
      readonly apiOnly: boolean
    }
  /** Pauses a machine with all its processes. */
  | { readonly type: 'pauseMachine'; readonly node: number; readonly forMs: number }
  | { readonly type: 'pausePrimarysMachine'; readonly primary: number; readonly forMs: number }
  | { readonly type: 'restartSentinel'; readonly node: number; readonly forMs: number }
  /** Nothing reaches the API server. */
  | { readonly type: 'apiAway'; readonly forMs: number }
  | { readonly type: 'cutOperator'; readonly index: number; readonly forMs: number }
  /** The sentinel on this machine can stop no process, because another program traces them. */
  | { readonly type: 'refuseStops'; readonly node: number; readonly forMs: number }
  /** Containers start late, restores take longer, and restored apps answer late. */
  | {
      readonly type: 'slowStage'
      readonly node: number
      readonly startMs: number
      readonly restoreMs: number
      readonly answerMs: number
      readonly forMs: number
    }
  /** The events of one watch are late, or do not come. */
  | {
      readonly type: 'lagOperator'
      readonly index: number
      readonly resource: Lagging
      readonly lagMs: number
      readonly forMs: number
    }
  | {
      readonly type: 'lagAgent'
      readonly node: number
      /** Agents read no kind of owner. */
      readonly resource: Exclude<Lagging, 'sets'>
      readonly lagMs: number
      readonly forMs: number
    }
  | {
      readonly type: 'troubleOperator'
      readonly index: number
      readonly refusals: number
      readonly lostAnswers: number
      readonly forMs: number
    }
  /** An operator's creations succeed, but their responses are lost. */
  | { readonly type: 'loseCreates'; readonly index: number; readonly forMs: number }
  | { readonly type: 'slowCollector'; readonly forMs: number }
  | { readonly type: 'jumpClock'; readonly node: number; readonly byMs: number }
  | { readonly type: 'jumpOperatorsClock'; readonly index: number; readonly byMs: number }
  | { readonly type: 'scale'; readonly replicas: number }
  | { readonly type: 'editBackups'; readonly hot: number; readonly cold: number }
  | { readonly type: 'pauseSet'; readonly forMs: number }
  | { readonly type: 'recreateSet' }
  | { readonly type: 'handOver'; readonly primary: number }
  | { readonly type: 'editInterval'; readonly seconds: number }
  /** A merge patch of the set's spec. */
  | { readonly type: 'editSpec'; readonly spec: object }
  /** The set is suspended, and resumes after that time. */
  | { readonly type: 'nap'; readonly forMs: number }
  | Move

/** Those that only a cluster whose primaries move knows. */
export type Move =
  /** A user asks for a Migration. */
  | {
      readonly type: 'move'
      readonly primary: number
      /** The only node that it allows; undefined: any; -1: one that does not exist. */
      readonly to: number | undefined
      readonly maxDowntimeMs: number | undefined
    }
  /** A user deletes a Migration that has not ended. */
  | { readonly type: 'abortMove'; readonly move: number }
  /** A fault of the pod that moves, of the pod that takes over, or of their nodes. Without such a pod, nothing happens. */
  | { readonly type: 'hitMove'; readonly of: 'source' | 'target'; readonly how: Hit; readonly forMs: number }
  /** The API server refuses pods of this operator, as with a quota. */
  | { readonly type: 'refusePods'; readonly forMs: number }
  /** A node is cordoned and emptied, as `kubectl drain` does. */
  | { readonly type: 'drain'; readonly node: number; readonly forMs: number }

export type Hit =
  | 'endApp'
  | 'deletePod'
  | 'endAgent'
  | 'powerOff'
  /** No connection between the two nodes works. */
  | 'cutTransfer'
  | 'refuseStops'
  | 'refuseRestores'
  /** All other nodes are cordoned. */
  | 'noRoom'

export type Lagging = 'pods' | 'leases' | 'reports' | 'sets'
