/**
 * The one catalogue of what can go wrong on a node. Codes are stable: they become reasons of conditions, of checks of
 * a node's report and labels of metrics. Messages never contain anything of an image, only names, numbers and paths.
 */

const entry = (message: string, cure: string) => ({ message, cure })

export const agentErrors = Object.freeze({
  SentinelUnavailable: entry(
    'the sentinel of this node does not answer',
    'restart the agent of this node; /run/understudy/sentinel.log says what stopped the sentinel',
  ),
  SentinelLost: entry(
    'the connection to the sentinel broke; what it had stopped for this agent goes on',
    'nothing: it is tried again; look at /run/understudy/sentinel.log if it repeats',
  ),
  SentinelRefused: entry(
    'the sentinel refused an order',
    'run agent and sentinel of one version: restart the agent of this node',
  ),
  SentinelTooOld: entry(
    'a sentinel of another version runs and has work under way',
    'nothing: it is replaced as soon as it guards nothing; to hurry, drain the node',
  ),
  NotRetired: entry(
    'something of it is still on the node',
    'end what is named here, or have it end: delete the sets, wait for their pods to be gone; the agent tries again by itself',
  ),
  BinariesMissing: entry(
    'the programs of the agent are not where its image has them',
    'use the image understudy.invalid/agent of the same version as the operator',
  ),
  ProcessGone: entry(
    'the process ended before the work on it was done',
    'nothing: its end is a failover of its own',
  ),
  NotRunning: entry(
    'a container of the pod has no process',
    'nothing: it is looked for again when the pod changes',
  ),
  HoldUnavailable: entry(
    'the first process of the understudy takes no orders',
    'delete the understudy; check that its containers may write to the volume understudy-hold',
  ),
  HoldRefused: entry(
    'the first process of the understudy refused an order',
    'delete the understudy: it does not hold what it should hold',
  ),
  GateUnavailable: entry(
    'the gate of a cold backup takes no messages of this node',
    'nothing: it is tried again; the operator replaces a cold backup that cannot be woken',
  ),
  StopFailed: entry(
    'not all processes of the pod could be stopped in time',
    'look in the pod for processes in uninterruptible sleep (state D; slow storage is the usual cause), and for traced ones (state t)',
  ),
  DumpFailed: entry(
    'CRIU could not save the memory of a container',
    'look up the lines of its log given here; io_uring, devices and foreign sockets are the usual causes',
  ),
  DumpVoid: entry(
    'the pod was told to end while its memory was saved',
    'nothing: the memory of a pod that is ending is not kept',
  ),
  DumpExpired: entry(
    'saving the memory took longer than it may; the pod went on',
    'raise checkpoint.maxFreezePercent, or give the node faster memory',
  ),
  HandoverExpired: entry(
    'the primary stood still for its successor, which was not ready in time; it went on',
    'look at what the node of the successor reports; raise hotBackups if the memory does not fit there',
  ),
  LayerFailed: entry(
    'the writable layer or a volume could not be saved',
    'keep large files out of the writable layer and emptyDirs, or on a volume that is not saved',
  ),
  UnderstudySpoiled: entry(
    'an earlier memory changed files of the image in this understudy, and that cannot be taken back',
    'nothing: the understudy is replaced by a new one',
  ),
  CredentialsExceed: entry(
    'the saved processes have rights that the understudy does not have',
    'give primary and understudy the same security context, and their nodes the same security modules; if they have them, treat the source node as hostile',
  ),
  ImageDiffers: entry(
    'the understudy does not run the image that was saved',
    'name the image by its digest, or pull it again on this node',
  ),
  RestoreFailed: entry(
    'CRIU could not bring the memory back in the understudy',
    'look up the lines of its log given here; files that differ between the two pods are the usual cause',
  ),
  RestoreExpired: entry(
    'bringing the memory back took longer than it may',
    'look for pressure on memory and processors of this node',
  ),
  PagesFailed: entry(
    'memory could not be brought back lazily; everything is brought back at once',
    'nothing, but a promotion takes longer: look for userfaultfd on this node (CONFIG_USERFAULTFD, seccomp or security modules)',
  ),
  PagesLost: entry(
    'memory that was still to come did not come, and the application was ended',
    'nothing: another generation or understudy goes on; look for out-of-memory kills of criu on this node',
  ),
  PagesComing: entry(
    'memory is still on its way into the application, so it cannot be saved yet',
    'nothing: it is saved as soon as everything is there',
  ),
  CloneLost: entry(
    'the restored processes are gone',
    'nothing: the next generation is restored; look for out-of-memory kills if it repeats',
  ),
  ThawFailed: entry(
    'the restored processes did not go on stage',
    'nothing: an older generation or another understudy is taken',
  ),
  NotCalled: entry(
    'the Lease of the slot names another pod by now',
    'nothing: only the pod that the Lease names goes on stage',
  ),
  StillCalled: entry(
    'the Lease of the slot names the pod whose application was to be ended',
    'nothing: the agent has seen an older Lease, and looks again',
  ),
  NewerElsewhere: entry(
    'other nodes have newer memory of the slot, and it could not be fetched',
    'nothing: another pod is called or made where it can be had, and after two minutes older memory goes on; let the nodes reach each other',
  ),
  PeerUnreachable: entry(
    'the agent of another node cannot be reached',
    'nothing: it is tried again; let the nodes reach each other on the port of their reports',
  ),
  PeerKeyDiffers: entry(
    'another key answers than the one in the report of that node',
    'nothing, if that agent has just been installed anew; else find out who answers at its address',
  ),
  PeerRefused: entry(
    'the agent of another node gives nothing of this slot to this node',
    'nothing: it is tried again; it has not yet seen this node among the holders, or its report',
  ),
  PeerForeign: entry(
    'memory of a pod or a node that the Lease of its slot does not name',
    'nothing when it passes: a Lease was seen late; if it does not, treat that node as hostile',
  ),
  MachineDiffers: entry(
    'memory of another kind of machine cannot go on here',
    'use nodes of one processor type for a set, and upgrade kernels and agents of all of them',
  ),
  PodForeign: entry(
    'memory of one namespace is not brought back in a pod of another',
    'report this: nothing should have asked for it',
  ),
  PeerSilent: entry(
    'the agent of another node has stopped in the middle of an answer',
    'nothing: it is tried again; look for a node that hangs or a network that drops large packets',
  ),
  PeerMalformed: entry(
    'the agent of another node answered what is no answer',
    'run agents of one version; if they are, treat that node as hostile',
  ),
  GenerationImplausible: entry(
    'the agent of another node offers a generation that the slot cannot have',
    'nothing: it is tried again when the Lease of the slot is seen here; if it goes on, treat that node as hostile',
  ),
  KeyMissing: entry(
    'the key for generations on disks cannot be read, so none is written there',
    'let the operator run, which makes the Secret, and agents read it: apply deploy/agent',
  ),
  VolumesTooLarge: entry(
    'the writable layers and emptyDirs of the pod hold more than checkpoint.volumes.maxSize, so it is not saved',
    'raise checkpoint.volumes.maxSize, or keep large files elsewhere than in the writable layer, /dev/shm and emptyDirs',
  ),
  Unsupported: entry(
    'the pod has something that cannot be saved',
    'take it out of the template, or set hotBackup.mode to Warm',
  ),
})

export type AgentErrorCode = keyof typeof agentErrors

/** Every failure of work on a node that callers tell apart. `message` is the catalogue's, then what was found. */
export class AgentError extends Error {
  override readonly name = 'AgentError'
  readonly code: AgentErrorCode
  /** What was found this time: names, numbers, paths, lines of CRIU's log. */
  readonly detail: string | undefined

  constructor(code: AgentErrorCode, detail?: string, cause?: unknown) {
    const { message } = agentErrors[code]
    super(detail === undefined ? message : `${message}: ${detail}`, cause === undefined ? {} : { cause })
    this.code = code
    this.detail = detail
  }

  /** What a person can do about it. */
  get cure(): string {
    return agentErrors[this.code].cure
  }
}

/** Whether it is an AgentError, of one of the codes if any are given. */
export function isAgentError(error: unknown, ...codes: readonly AgentErrorCode[]): error is AgentError {
  return error instanceof AgentError && (codes.length === 0 || codes.includes(error.code))
}
