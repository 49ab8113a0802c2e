/** Times of docs/failure-model.md, as sums of its parts, ms. What a busy machine adds is measured, and added later. */
import { handoverDeadlineMs, handoverSlackMs } from '../src/slot/decide/deadlines.ts'

/** *seen + moved*: watch, Lease, thaw, first probe, label. */
const takenOverMs = 1_000
/** kube-proxy writes its rules at most once a second. */
const routedMs = 1_000

/** An app that ended, and whose understudy holds its memory. */
export const deathMs = takenOverMs + routedMs
export const nodeTimeoutMs = 3_000
/** A primary with little memory that was stopped for a handover which something else prevents. */
export const handoverMs = handoverDeadlineMs(0) + handoverSlackMs
/** Longer than any fault keeps the API server away. */
export const answeredWithinMs = 120_000
/**
 * A node that is silent: its voters state it, and one second later a takeover follows. If the node comes back just then,
 * its agent has to write for one more time-out before the same pod gets a new term.
 */
export const silenceMs = 2 * nodeTimeoutMs + 1_000 + deathMs
/**
 * A primary that a voter hears is fenced at most until its next heartbeat, of which there are twelve in a time-out, and
 * the answers to it. The sentinel looks every 50 ms.
 */
export const fencedMs = nodeTimeoutMs / 12 + 100
/** The standby operator leads, and reads its caches again. */
export const electionMs = 4_000
/** An understudy that was called and does not answer is given up for the next one. */
export const callMs = 10_000
/** A death while no agent can report it: the operator knows it by the container after that. */
export const unnoticedMs = 15_000
/** Start of an agent until it works: Node, self-test, caches. */
export const agentStartMs = 20_000
/** Start of a sentinel, and the first answers of its voters. */
export const sentinelStartMs = 1_000

export const liveness = { periodMilliseconds: 500, failureThreshold: 4 } as const
/** Each probe may take its time-out of a second. */
export const hangMs = liveness.failureThreshold * (liveness.periodMilliseconds + 1_000) + deathMs

/** The two agents of a grant, and the question of the heir's agent to an API server that does not answer. */
export const grantMs = 1_000
/** kube-apiserver's own start, and the first successful watch after it. */
export const apiStartMs = 20_000

/**
 * Full protection after all faults: nodes are Ready, agents have passed their self-tests, pods are created and hold
 * memory. Kubelets delay a container that ended twice by 10 s and then 20 s; Kubernetes looks at nodes every 5 s.
 */
export const protectionMs = 240_000
