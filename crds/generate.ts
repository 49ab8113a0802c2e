/** `npm run generate` writes the CRD; with `--check` it fails when the committed one is not what it would write. */
import { readFileSync, writeFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { backupPodSets } from '../src/api/backuppodset.ts'
import { backupPodSetSchema } from './schema/backuppodset.ts'

export const crdFile = new URL('backup.example.com_backuppodsets.yaml', import.meta.url)

export function backupPodSetCrd() {
  const { group, version, plural, kind } = backupPodSets
  const column = (name: string, jsonPath: string, more: object = {}) => ({
    name,
    type: 'string',
    jsonPath,
    ...more,
  })
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: 'backuppodset',
        shortNames: ['bps'],
        categories: ['all'],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          additionalPrinterColumns: [
            column('Namespace', '.metadata.namespace'),
            column('Replicas', '.status.summary.replicas'),
            column('Hotbackups', '.status.summary.hotbackups'),
            column('Coldbackups', '.status.summary.coldbackups'),
            { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
            column('Ready', '.status.conditions[?(@.type=="Ready")].status', { priority: 1 }),
            column('Reason', '.status.conditions[?(@.type=="Ready")].reason', { priority: 1 }),
          ],
          subresources: {
            status: {},
            scale: {
              specReplicasPath: '.spec.replicas',
              statusReplicasPath: '.status.replicas',
              labelSelectorPath: '.status.selector',
            },
          },
          schema: { openAPIV3Schema: backupPodSetSchema() },
        },
      ],
    },
  }
}

const header = '# Made by `npm run generate` from crds/schema/ and crds/pod-template.schema.json.\n'

/** The text of the committed file. */
export const crdYaml = (): string =>
  header + stringify(backupPodSetCrd(), { lineWidth: 0, aliasDuplicateObjects: false })

if (import.meta.main) {
  if (!process.argv.includes('--check')) writeFileSync(crdFile, crdYaml())
  else if (readFileSync(crdFile, 'utf8') !== crdYaml()) {
    console.error(
      'crds/backup.example.com_backuppodsets.yaml is stale: run `npm run generate` and commit the result',
    )
    process.exitCode = 1
  }
}
