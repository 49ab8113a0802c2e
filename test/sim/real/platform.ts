import { operatorElection } from '../../../src/api/election.ts'
import type { Api } from '../../../src/kube/api-types.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { namespaces } from '../../../src/kube/resources.ts'
import { setRef } from '../model/cluster.ts'
import type { Platform } from '../model/platform.ts'
import { createFaultyApi } from './faulty-api.ts'
import { createMirror, kinds } from './mirror.ts'
import { createTrueTime } from './true-time.ts'

/** A machine that also does other work is slow, and that is no fault. */
const slack = 5

/** Gives `work` exclusive use of the server, and leaves the server as empty as it was. */
export async function onRealServer<T>(api: Api, work: (platform: Platform) => Promise<T>): Promise<T> {
  const { namespace } = operatorElection
  await api.create(namespaces, { metadata: { name: namespace } }).catch((error: unknown) => {
    if (!isKubeError(error, 'AlreadyExists')) throw error
  })
  const over = new AbortController()
  const time = createTrueTime()
  try {
    const mirror = await createMirror(api, over.signal)
    const apiOf: Platform['apiOf'] = way => createFaultyApi(api, { ...way, time, over: over.signal })
    const done = await work({ time, server: mirror.objects, apiOf, slack })
    await mirror.settled()
    return done
  } finally {
    over.abort(new Error('the round is over'))
    await empty(api)
  }
}

async function empty(api: Api): Promise<void> {
  const ours = new Set([undefined, setRef.namespace, operatorElection.namespace])
  for (const resource of kinds)
    for (const { metadata } of (await api.list(resource, {})).items) {
      if (!ours.has(metadata.namespace)) continue
      await api.delete(resource, metadata, { gracePeriodSeconds: 0 }).catch((error: unknown) => {
        if (!isKubeError(error, 'NotFound')) throw error
      })
    }
}
