import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { artifactNames, missingArtifacts } from './artifacts.ts'
import { recipes } from './recipes.ts'

test('inputs are the same each time, JSON, and different for every artifact', async () => {
  const inputs = await Promise.all(
    artifactNames.map(async name => JSON.stringify(await recipes[name].inputs())),
  )
  const again = await Promise.all(
    artifactNames.map(async name => JSON.stringify(await recipes[name].inputs())),
  )
  expect(again).toEqual(inputs)
  expect(new Set(inputs).size).toBe(artifactNames.length)
})

test('what a Go artifact is made of includes the hashes of every module', async () => {
  const { sources } = (await recipes.kube.inputs()) as { sources: Record<string, string> }
  expect(Object.keys(sources).sort()).toEqual(['etcd/main.go', 'go.mod', 'go.sum', 'kube/main.go'])
  expect(sources['go.sum']).toMatch(/k8s\.io\/kubernetes v1\.36\.3 h1:/)
})

test('versions in titles are those in go.mod', async () => {
  const version = (title: string): string => /(\d+\.\d+\.\d+)$/.exec(title)?.[1] ?? ''
  const modules = {
    kube: 'k8s.io/kubernetes',
    etcd: 'go.etcd.io/etcd/server/v3',
    containerd: 'github.com/containerd/containerd/v2',
    coredns: 'github.com/coredns/coredns',
    kwok: 'sigs.k8s.io/kwok',
    crane: 'github.com/google/go-containerregistry',
  } as const
  for (const name of Object.keys(modules) as (keyof typeof modules)[]) {
    const { sources } = (await recipes[name].inputs()) as { sources: Record<string, string> }
    expect(sources['go.mod']).toContain(`${modules[name]} v${version(recipes[name].title)}`)
  }
})

test('an empty cache has none of them', async () => {
  const cache = await mkdtemp(join(tmpdir(), 'understudy-cache-'))
  try {
    expect(await missingArtifacts(['kube', 'kwok'], cache)).toEqual(['kube', 'kwok'])
  } finally {
    await rm(cache, { recursive: true })
  }
})
