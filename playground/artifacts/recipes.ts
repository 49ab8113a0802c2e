import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../exec.ts'
import { goBinaries, goEnvironment } from './go.ts'
import { nodeRootfs } from './node-rootfs.ts'
import type { Recipe } from './recipe.ts'

export const KUBERNETES_VERSION = '1.36.3'
/** As go/helm/go.mod has it. */
export const HELM_VERSION = '4.3.2'

/** Without these the kubelet reports v0.0.0, and checks that compare versions misbehave. */
const versionVariables = Object.fromEntries(
  ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap(pkg => [
    [`${pkg}.gitVersion`, `v${KUBERNETES_VERSION}`],
    [`${pkg}.gitMajor`, KUBERNETES_VERSION.split('.')[0] ?? ''],
    [`${pkg}.gitMinor`, KUBERNETES_VERSION.split('.')[1] ?? ''],
    [`${pkg}.gitTreeState`, 'clean'],
  ]),
)

const kubeNames = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'kubectl',
]

export const recipes = {
  kube: goBinaries(`Kubernetes ${KUBERNETES_VERSION}`, {
    module: 'kubernetes',
    packages: ['./kube'],
    variables: versionVariables,
    links: Object.fromEntries(kubeNames.map(name => [name, 'kube'])),
  }),
  etcd: goBinaries('etcd 3.6.8', { module: 'kubernetes', packages: ['./etcd'] }),
  containerd: goBinaries('containerd 2.4.2', {
    module: 'containerd',
    packages: ['containerd', 'containerd-shim-runc-v2', 'ctr'].map(
      name => `github.com/containerd/containerd/v2/cmd/${name}`,
    ),
    variables: { 'github.com/containerd/containerd/v2/version.Version': 'v2.4.2' },
  }),
  coredns: goBinaries('CoreDNS 1.14.7', { module: 'coredns', packages: ['.'] }),
  kwok: goBinaries('KWOK 0.8.0', {
    module: 'kwok',
    packages: ['sigs.k8s.io/kwok/cmd/kwok'],
    // The stages, which define how fake nodes and pods behave, are files of the module and not part of the binary.
    extra: async (directory, { moduleDirectory, signal }) => {
      const kwok = await run(['go', 'list', '-m', '-f', '{{.Dir}}', 'sigs.k8s.io/kwok'], {
        cwd: moduleDirectory,
        env: goEnvironment(),
        signal,
      })
      await cp(join(kwok.trim(), 'kustomize', 'stage'), join(directory, 'stage'), { recursive: true })
    },
  }),
  helm: goBinaries(`Helm ${HELM_VERSION}`, {
    module: 'helm',
    packages: ['helm.sh/helm/v4/cmd/helm'],
    variables: { 'helm.sh/helm/v4/internal/version.version': `v${HELM_VERSION}` },
  }),
  /** Copies images between layouts and registries, and serves a registry for tests. */
  crane: goBinaries('crane 0.22.1', {
    module: 'crane',
    packages: ['github.com/google/go-containerregistry/cmd/crane'],
  }),
  'node-rootfs': nodeRootfs,
} satisfies Record<string, Recipe>

export type ArtifactName = keyof typeof recipes
