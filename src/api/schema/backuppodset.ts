import { limits } from '../backuppodset.ts'
import { refusals } from '../errors.ts'
import { rule, type Schema, text } from './build.ts'
import { serviceNameRules } from './service-rules.ts'
import { specSchema } from './spec.ts'
import { statusSchema } from './status.ts'

/** openAPIV3Schema of v1alpha1. */
export const backupPodSetSchema = (): Schema => ({
  description:
    'BackupPodSet keeps primaries, hot backups and cold backups of one pod template. When a primary is lost, the backup that can take over fastest replaces it.',
  type: 'object',
  required: ['spec'],
  properties: {
    apiVersion: text('API version of this kind: backup.example.com/v1alpha1.'),
    kind: text('Name of this kind: BackupPodSet.'),
    metadata: { type: 'object' },
    spec: specSchema(),
    status: statusSchema(),
  },
  'x-kubernetes-validations': [
    // The API server accepts no fieldPath into metadata; the message names the field.
    rule(`self.metadata.name.size() <= ${limits.name}`, refusals.NameTooLong.message),
    ...serviceNameRules(),
  ],
})
