import { expect, it } from 'vitest'
import type { Pod } from '../kube/resources.ts'
import { endingAfter } from './outcomes.ts'

it('D16.suspend: pods that use up their grace periods, or were deleted a moment ago, have not ended', () => {
  const pod = (uid: string, { owner = 'set', phase = 'Running', isGoing = true } = {}): Pod => ({
    metadata: {
      ...{ name: uid, namespace: 'default', uid, resourceVersion: '1' },
      ...(isGoing && { deletionTimestamp: '2030-01-01T00:00:00Z' }),
      ownerReferences: [
        {
          apiVersion: 'backup.example.com/v1alpha1',
          kind: 'BackupPodSet',
          controller: true,
          name: 'web',
          uid: owner,
        },
      ],
    },
    status: { phase },
  })
  const lives = pod('lives', { isGoing: false })
  const others = [pod('other', { owner: 'x' }), pod('done', { phase: 'Succeeded' })]
  const all = [lives, pod('going'), pod('deleted', { isGoing: false }), ...others]
  const pods = new Map(all.map(each => [each.metadata.uid, each]))
  expect(endingAfter({ pods }, [lives], { uid: 'set' })).toBe(2)
  expect(endingAfter({ pods: new Map([['lives', lives]]) }, [lives], { uid: 'set' })).toBe(0)
})
