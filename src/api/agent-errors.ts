/**
 * The one catalogue of failures on a node. Codes are stable: they become reasons of conditions, of checks in a node's
 * report, and labels of metrics. Messages contain nothing from an image, only names, numbers and paths.
 */

const entry = (message: string, cure: string) => ({ message, cure })

export const agentErrors = Object.freeze({
  SentinelUnavailable: entry(
    'the sentinel of this node does not answer',
    'restart the agent of this node; /run/understudy/sentinel.log says why the sentinel stopped',
  ),
  SentinelLost: entry(
    'the connection to the sentinel broke; it has resumed the processes that it had stopped for this agent',
    'no action needed: the agent tries again; see /run/understudy/sentinel.log if it repeats',
  ),
  SentinelRefused: entry(
    'the sentinel refused a command',
    'run agent and sentinel of one version: restart the agent of this node',
  ),
  SentinelTooOld: entry(
    'a sentinel of another version runs and has work under way',
    'no action needed: the agent replaces it as soon as it watches no pod; drain the node to replace it now',
  ),
  NotRetired: entry(
    'parts of this installation are still on the node',
    'delete the sets and wait until their pods are gone, and end the processes that are named here; the agent tries again by itself',
  ),
  BinariesMissing: entry(
    'the programs of the agent are missing from its image',
    'use the image understudy.invalid/agent of the same version as the operator',
  ),
  ProcessGone: entry(
    'the process ended before the work on it was done',
    'no action needed: the exit is handled as a failover',
  ),
  NotRunning: entry(
    'a container of the pod has no process',
    'no action needed: the agent looks again when the pod changes',
  ),
  CloneSourceGone: entry(
    'the memory that was to be copied for a new slot is not on this node any more',
    'no action needed: the operator chooses the memory and the node again',
  ),
  HoldUnavailable: entry(
    'the first process of the understudy accepts no commands',
    'delete the understudy; check that its containers may write to the volume understudy-hold',
  ),
  HoldRefused: entry(
    'the first process of the understudy refused a command',
    'delete the understudy: it is in another state than the agent expects',
  ),
  GateUnavailable: entry(
    'the gate of a cold backup accepts no messages from this node',
    'no action needed: the agent tries again, and the operator replaces a cold backup that it cannot wake',
  ),
  StopFailed: entry(
    'not all processes of the pod could be stopped in time',
    'look in the pod for processes in uninterruptible sleep (state D; slow storage is the usual cause), and for traced ones (state t)',
  ),
  Fenced: entry(
    'the primary is stopped until enough of its voters answer',
    'no action needed: it resumes by itself; let its node reach the nodes that keep its copies on the port of heartbeats in their reports, or the API server',
  ),
  NoAnswers: entry(
    'too few of the voters of the primary answer, so it is not fenced yet',
    'let the nodes reach each other on the port of heartbeats in their reports; the agent tries again',
  ),
  DumpFailed: entry(
    'CRIU could not save the memory of a container',
    'see the lines of its log that are quoted here; io_uring, devices and sockets of other pods are the usual causes',
  ),
  TrackerFailed: entry(
    'the writes of a pod cannot be recorded, so its memory is saved whole',
    'no action needed: checkpoints stop the pod for longer; see the log of its agent for the reason',
  ),
  RecordWrong: entry(
    'the record of written pages missed a change, so this dump was discarded',
    'no action needed: the memory of this pod is saved whole from now on; report it with the log of its agent',
  ),
  DumpVoid: entry(
    'the pod was terminated while its memory was being saved',
    'no action needed: the memory of a terminating pod is not kept',
  ),
  DumpExpired: entry(
    'saving the memory took longer than allowed, so the agent resumed the pod',
    'make the memory or the files of the container smaller, or give the node faster memory',
  ),
  HandoverExpired: entry(
    'the primary was stopped for its successor, which was not ready in time; the primary runs again',
    'see what the node of the successor reports; if the memory does not fit there, raise the memory limit of the container',
  ),
  LayerFailed: entry(
    'the writable layer or a volume could not be saved',
    'move large files out of the writable layer and emptyDirs, to a volume that is not saved',
  ),
  UnderstudySpoiled: entry(
    'an earlier restore changed files of the image in this understudy, and the agent cannot undo that',
    'no action needed: the operator replaces the understudy',
  ),
  CredentialsExceed: entry(
    'the saved processes have rights that the understudy lacks',
    'give primary and understudy the same security context, and their nodes the same security modules; if these are the same already, treat the source node as hostile',
  ),
  ImageDiffers: entry(
    'the understudy runs another image than the saved container',
    'refer to the image by its digest, or pull it again on this node',
  ),
  RestoreFailed: entry(
    'CRIU could not restore the memory in the understudy',
    'see the lines of its log that are quoted here; files that differ between the two pods are the usual cause',
  ),
  RestoreExpired: entry(
    'restoring the memory took longer than allowed',
    'check this node for memory and CPU pressure',
  ),
  PagesFailed: entry(
    'pages could not be loaded on demand, so all memory is loaded before the application runs',
    'no action needed, but promotions take longer: check whether this node allows userfaultfd (CONFIG_USERFAULTFD, seccomp, security modules)',
  ),
  PagesLost: entry(
    'the rest of the memory could not be loaded, so the application was killed',
    'no action needed: another generation or understudy takes over; look for out-of-memory kills of criu on this node',
  ),
  PagesComing: entry(
    'the memory of the application is still being loaded, so it cannot be saved yet',
    'no action needed: the agent saves it as soon as all pages are loaded',
  ),
  CloneLost: entry(
    'the restored processes are gone',
    'no action needed: the agent restores the next generation; look for out-of-memory kills if it repeats',
  ),
  ThawFailed: entry(
    'the restored processes could not be resumed',
    'no action needed: an older generation or another understudy is used',
  ),
  EndsApp: entry(
    'the application ended before it answered, each time it was resumed from this memory',
    'see how its containers ended (kubectl describe pod, kubectl logs --previous) and give the application what it needs: the memory is resumed once more after a pause, unless older memory has answered by then',
  ),
  NotCalled: entry(
    'the Lease of the slot names another pod now',
    'no action needed: only the pod that the Lease names may run the memory',
  ),
  StillCalled: entry(
    'the Lease of the slot names the pod whose application the agent was about to end',
    'no action needed: the agent saw an older Lease, and looks again',
  ),
  NewerElsewhere: entry(
    'other nodes have newer memory of the slot, and this node could not fetch it',
    'let the nodes reach each other; meanwhile the operator chooses or creates a pod where the newer memory is, and after two minutes it uses the older memory',
  ),
  PeerUnreachable: entry(
    'the agent of another node cannot be reached',
    'let the nodes reach each other on the port in their reports; the agent tries again',
  ),
  PeerKeyDiffers: entry(
    'the agent of another node answers with another key than the one in its report',
    'no action needed if that agent was just reinstalled; otherwise find out which process answers at its address',
  ),
  PeerRefused: entry(
    'the agent of another node refuses to send this slot to this node',
    'no action needed: this agent tries again; the other agent has not yet seen this node among the holders, or its report',
  ),
  PeerForeign: entry(
    'the memory is from a pod or a node that the Lease of its slot does not name',
    'no action needed if it passes: an agent saw a Lease late; if it lasts, treat that node as hostile',
  ),
  MachineDiffers: entry(
    'the memory is from another kind of machine and cannot run here',
    'use nodes of one processor type for a set, and keep their kernels and agents at one version',
  ),
  PodForeign: entry(
    'the memory is from another namespace than the pod',
    'please report this: no part of the operator should ask for it',
  ),
  PeerSilent: entry(
    'the agent of another node stopped in the middle of an answer',
    'no action needed unless it repeats: the agent tries again; look for a node that hangs or a network that drops large packets',
  ),
  PeerMalformed: entry(
    'the agent of another node sent a malformed answer',
    'run agents of one version; if they already are, treat that node as hostile',
  ),
  GenerationImplausible: entry(
    'the agent of another node offers a generation that the slot cannot have',
    'no action needed if it passes: the agent tries again once it has seen the Lease of the slot; if it lasts, treat that node as hostile',
  ),
  KeyMissing: entry(
    'the agent lacks a part of the key for generations on its disk, so it reads and writes none',
    'run the operator, which creates the Secret of the agents and encrypts the part of each node, and let agents read that Secret: apply deploy/agent',
  ),
  VolumesTooLarge: entry(
    'the writable layers and emptyDirs of the pod hold more than checkpoint.volumes.maxSize, so it is not saved',
    'raise checkpoint.volumes.maxSize, or move large files out of the writable layer, /dev/shm and emptyDirs',
  ),
  Unsupported: entry(
    'the pod has something that cannot be saved',
    'remove it from the template, or set hotBackup.mode to Warm',
  ),
})

export type AgentErrorCode = keyof typeof agentErrors

/** A failure of work on a node that callers distinguish. `message` is the catalogue's text, followed by the detail. */
export class AgentError extends Error {
  override readonly name = 'AgentError'
  readonly code: AgentErrorCode
  /** The findings of this failure: names, numbers, paths, lines of CRIU's log. */
  readonly detail: string | undefined

  constructor(code: AgentErrorCode, detail?: string, cause?: unknown) {
    const { message } = agentErrors[code]
    super(detail === undefined ? message : `${message}: ${detail}`, cause === undefined ? {} : { cause })
    this.code = code
    this.detail = detail
  }

  /** Advice for a person. */
  get cure(): string {
    return agentErrors[this.code].cure
  }
}

/** Whether it is an AgentError, of one of the codes if any are given. */
export function isAgentError(error: unknown, ...codes: readonly AgentErrorCode[]): error is AgentError {
  return error instanceof AgentError && (codes.length === 0 || codes.includes(error.code))
}
