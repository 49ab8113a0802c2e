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
  /** Of the agents. */
  readonly namespace: string
  /** Whether any set keeps memory. */
  readonly wanted: () => boolean
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

const lookMs = 5_000
/** One that was deleted, to have another one made, is missed for so long. */
const againMs = 60_000
const patience = { initialMs: 1_000, maxMs: 60_000, jitter: 0.2 }

/**
 * Makes the agents' Secret where it is missing, as long as the signal lets it. The operator can make it and not read it:
 * it never sees memory, and needs no key.
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
      log.info({ namespace, secret: generationsKey.secret }, 'the key of generations on disks was made')
    } catch (error) {
      if (signal.aborted) return
      if (!isKubeError(error, 'AlreadyExists')) {
        const fields = { err: error, namespace, secret: generationsKey.secret }
        // Installed without agents: then there is nobody to read it either.
        if (isKubeError(error, 'NotFound')) log.debug(fields, 'there is no namespace for the key')
        else log.warn(fields, 'the key of generations on disks could not be made')
        await pause(pauses.next())
        continue
      }
    }
    pauses.reset()
    await pause(againMs)
  }
}
