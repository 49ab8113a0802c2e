import { describe, expect, test } from 'vitest'
import type { Node } from '../../kube/resources.ts'
import { healthy, node, places, schemas, there } from '../testing/installation.ts'
import { report } from '../testing/objects.ts'
import { examine } from './doctor.ts'
import type { Installation } from './installation.ts'
import { platformOf, platforms } from './platforms.ts'

interface Facts {
  readonly labels?: Readonly<Record<string, string>>
  readonly providerID?: string
  readonly osImage?: string
  readonly kubeletVersion?: string
}

function nodeWith(name: string, { labels, providerID, osImage, kubeletVersion }: Facts): Node {
  const plain = node(name)
  const info = plain.status?.nodeInfo
  if (info === undefined) throw new Error('a node without facts')
  return {
    metadata: { ...plain.metadata, labels: { ...plain.metadata.labels, ...labels } },
    spec: { ...(providerID === undefined ? {} : { providerID }) },
    status: {
      nodeInfo: { ...info, osImage: osImage ?? '', kubeletVersion: kubeletVersion ?? info.kubeletVersion },
    },
  }
}

/** Facts of nodes as their vendors' documents show them. */
const seen: readonly (readonly [string, string, Facts])[] = [
  [
    'GKE',
    'gke-shop-default-pool-1a2b3c4d-x0yz',
    {
      providerID: 'gce://project/europe-west1-b/gke-shop-default-pool-1a2b3c4d-x0yz',
      osImage: 'Container-Optimized OS from Google',
      kubeletVersion: 'v1.34.1-gke.1234000',
    },
  ],
  [
    'GKE Autopilot',
    'gk3-shop-pool-2-1a2b3c4d-x0yz',
    { providerID: 'gce://p/z/gk3-shop-pool-2-1a2b3c4d-x0yz', kubeletVersion: 'v1.34.1-gke.1234000' },
  ],
  [
    'GKE Sandbox',
    'gke-shop-sandbox-1a2b3c4d-x0yz',
    { providerID: 'gce://p/z/n', labels: { 'sandbox.gke.io/runtime': 'gvisor' } },
  ],
  [
    'EKS',
    'ip-10-0-1-2.eu-central-1.compute.internal',
    {
      providerID: 'aws:///eu-central-1a/i-0123456789abcdef0',
      osImage: 'Amazon Linux 2023.9.20250929',
      kubeletVersion: 'v1.34.1-eks-113cf36',
    },
  ],
  [
    'EKS Fargate',
    'fargate-ip-10-0-1-2.eu-central-1.compute.internal',
    { kubeletVersion: 'v1.34.1-eks-113cf36', labels: { 'eks.amazonaws.com/compute-type': 'fargate' } },
  ],
  [
    'Bottlerocket',
    'ip-10-0-1-3.eu-central-1.compute.internal',
    { osImage: 'Bottlerocket OS 1.50.0 (aws-k8s-1.34)', kubeletVersion: 'v1.34.1-eks-113cf36' },
  ],
  [
    'AKS',
    'aks-nodepool1-12345678-vmss000000',
    { providerID: 'azure:///subscriptions/s', labels: { 'kubernetes.azure.com/cluster': 'MC_shop' } },
  ],
  ['AKS virtual nodes', 'virtual-node-aci-linux', { labels: { type: 'virtual-kubelet' } }],
  ['Talos', 'talos-abc-def', { osImage: 'Talos (v1.11.2)' }],
  ['k3s', 'pi', { kubeletVersion: 'v1.34.1+k3s1', providerID: 'k3s://pi' }],
  ['kind', 'kind-worker', { providerID: 'kind://docker/kind/kind-worker' }],
]

describe('kinds of nodes', () => {
  test.each(seen)('%s is known by the facts of its nodes', (name, host, facts) => {
    expect(platformOf(nodeWith(host, facts))?.name).toBe(name)
  })

  test('each kind has its example here, and an ordinary node is of none', () => {
    expect(seen.map(([name]) => name).sort()).toEqual(platforms.map(({ name }) => name).sort())
    expect(platformOf(node('n1'))).toBeUndefined()
  })

  test('each refusal has a cure and a source', () => {
    for (const { refuses } of platforms) {
      expect(refuses.length).toBeGreaterThan(0)
      for (const { what, cure, source } of refuses) {
        expect(what).toMatch(/\w/)
        expect(cure).toMatch(/^[a-z]/)
        expect(new URL(source).protocol).toBe('https:')
      }
    }
  })
})

describe('D19.nodes: doctor', () => {
  const examined = (over: Partial<Installation>) =>
    examine({ ...healthy, ...over }, places, schemas).filter(({ verdict }) => verdict !== 'ok')
  const factsOf = (name: string): Facts => seen.find(([platform]) => platform === name)?.[2] ?? {}

  test('§7.6: says nothing of a kind of node while its nodes keep memory', () => {
    const nodes = there([nodeWith('n1', factsOf('GKE')), nodeWith('n2', factsOf('Bottlerocket'))])
    expect(examined({ nodes })).toEqual([])
  })

  test('§7.6: names what the kind refuses, once for all its nodes, where nodes have no agent', () => {
    const gke = factsOf('GKE')
    const nodes = there([nodeWith('n1', gke), nodeWith('n2', gke), nodeWith('n3', gke)])
    const found = examined({ nodes, reports: there([report('n1')]) })
    expect(found.map(({ about, verdict }) => `${about} ${verdict}`)).toEqual([
      'n2 broken',
      'n3 broken',
      'GKE note',
    ])
    expect(found.at(-1)?.message).toMatch(/^2 nodes are of this kind, which may refuse .*insufficient quota/)
    expect(found.at(-1)?.cure).toContain('deploy/critical-pods-quota')
  })

  test('§7.6: names it where a check fails', () => {
    const bad = { name: 'canary', ok: false, message: 'not restored', cure: 'look' }
    const nodes = there([nodeWith('n1', factsOf('Bottlerocket')), node('n2')])
    const found = examined({ nodes, reports: there([report('n1', { checks: [bad] }), report('n2')]) })
    expect(found.map(({ about }) => about)).toContain('Bottlerocket')
    expect(found.find(({ about }) => about === 'Bottlerocket')?.cure).toContain('Amazon Linux 2023')
  })

  test('§7.6: a node on which no agent can run is no fault', () => {
    const nodes = there([node('n1'), node('n2'), nodeWith('f', factsOf('EKS Fargate'))])
    const found = examined({ nodes })
    expect(found.map(({ about, verdict }) => `${about} ${verdict}`)).toEqual(['f note', 'EKS Fargate note'])
  })
})
