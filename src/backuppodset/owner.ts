import { backupPodSets } from '../api/backuppodset.ts'
import type { ParsedSet } from '../api/parse.ts'
import { apiVersionOf } from '../kube/resources.ts'
import type { Owner } from '../slot/decide/owner.ts'

/** A set as the owner of its slots and pods. */
export const ownerOf = ({ namespace, name, uid }: Pick<ParsedSet, 'namespace' | 'name' | 'uid'>): Owner => ({
  ...{ apiVersion: apiVersionOf(backupPodSets), kind: backupPodSets.kind },
  ...{ namespace, name, uid },
})
