import { generationsKey } from '../api/generations-key.ts'
import type { Api } from '../kube/api.ts'
import { createBackoff } from '../kube/backoff.ts'
import type { Clock } from '../kube/clock.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Log } from '../kube/log.ts'
import type { Random } from '../kube/random.ts'
import { secrets } from '../kube/resources.ts'

export interface GenerationsKeyOptions {
  readonly api: Pick<Api, 'create'>
  /** Namespace of the agents. */
  readonly namespace: string
  /** Returns whether any set keeps memory. */
  readonly wanted: () => boolean
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

const lookMs = 5_000
/**
 * Interval of later attempts: how long a Secret may be missing after an administrator deleted it to have it replaced.
 */
const againMs = 60_000
const patience = { initialMs: 1_000, maxMs: 60_000, jitter: 0.2 }

/**
 * Creates the agents' Secret whenever it is missing, until the signal fires. The operator may create it but not read
 * it: it never sees memory, and needs no key.
 */
export async function keepGenerationsKey(options: GenerationsKeyOptions, signal: AbortSignal): Promise<void> {
  const { api, namespace, wanted, clock, random, log } = options
  const pauses = createBackoff(patience, random)
  const pause = (ms: number) => clock.sleep(ms, signal).catch(() => undefined)
  while (!signal.aborted) {
    if (!wanted()) {
      await pause(lookMs)
      continue
    }
    try {
      const body = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { namespace, name: generationsKey.secret },
        type: 'Opaque',
        data: {
          [generationsKey.field]: Buffer.from(random.bytes(generationsKey.length)).toString('base64'),
        },
      }
      await api.create(secrets, body, { namespace, signal })
      log.info({ namespace, secret: generationsKey.secret }, 'created the key of generations on disks')
    } catch (error) {
      if (signal.aborted) return
      if (!isKubeError(error, 'AlreadyExists')) {
        const fields = { err: error, namespace, secret: generationsKey.secret }
        // Installed without agents: then no process needs the key.
        if (isKubeError(error, 'NotFound')) log.debug(fields, 'the namespace for the key does not exist')
        else log.warn(fields, 'cannot create the key of generations on disks')
        await pause(pauses.next())
        continue
      }
    }
    pauses.reset()
    await pause(againMs)
  }
}
