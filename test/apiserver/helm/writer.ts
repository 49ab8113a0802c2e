import type { Api } from '../../../src/kube/api.ts'

/** Writes to the set `plain` for as long as the returned function has not been called; that returns all failures. */
export function startWriter(
  admin: Api,
): () => Promise<{ readonly writes: number; readonly failures: readonly string[] }> {
  const failures: string[] = []
  let [writes, isOver] = [0, false]
  const writer = (async () => {
    while (!isOver) {
      writes += 1
      const path = '/apis/backup.example.com/v1alpha1/namespaces/default/backuppodsets/plain'
      const body = { metadata: { annotations: { 'example.com/count': String(writes) } } }
      const answer = await admin
        .request('PATCH', path, { body, contentType: 'application/merge-patch+json' })
        .then(({ status }) => status, String)
      if (answer !== 200) failures.push(String(answer))
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    return { writes, failures }
  })()
  return () => {
    isOver = true
    return writer
  }
}
