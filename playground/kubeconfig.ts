import { readFile, rename, writeFile } from 'node:fs/promises'
import { stringify } from 'yaml'
import type { Certificate } from './pki.ts'

export interface KubeconfigInputs {
  readonly path: string
  /** Name of the cluster and of the context. */
  readonly name: string
  /** Such as https://10.1.2.3:6443. */
  readonly server: string
  readonly user: string
  readonly caPath: string
  readonly certificate: Certificate
}

/** Writes a self-contained kubeconfig, which can be copied anywhere. Returns its path. */
export async function writeKubeconfig(inputs: KubeconfigInputs): Promise<string> {
  const base64 = async (path: string): Promise<string> => (await readFile(path)).toString('base64')
  const { name, user, server } = inputs
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority-data': await base64(inputs.caPath) } }],
    users: [
      {
        name: user,
        user: {
          'client-certificate-data': await base64(inputs.certificate.certPath),
          'client-key-data': await base64(inputs.certificate.keyPath),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user } }],
    'current-context': name,
  }
  const scratch = `${inputs.path}.${process.pid}`
  await writeFile(scratch, stringify(config), { mode: 0o600 })
  await rename(scratch, inputs.path)
  return inputs.path
}
