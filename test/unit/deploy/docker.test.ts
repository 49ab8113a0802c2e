import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ImageConfig } from '../../../images/build.ts'
import { agentConfig } from '../../../images/recipes/agent.ts'
import { operatorConfig } from '../../../images/recipes/operator.ts'
import { wakerConfig } from '../../../images/recipes/waker.ts'
import { packageVersion, project, text } from './manifests.ts'

// The Dockerfiles cannot be run without docker, but their instructions can be compared with `npm run image`.
const version = await packageVersion()
const images: [name: string, config: ImageConfig][] = [
  ['operator', operatorConfig(version)],
  ['agent', agentConfig(version)],
  ['waker', wakerConfig(version)],
]

interface Stage {
  readonly from: string
  readonly instructions: readonly { readonly name: string; readonly value: string }[]
}

async function stagesOf(name: string): Promise<Stage[]> {
  const lines = (await text(`deploy/docker/${name}.Dockerfile`)).split('\n')
  const instructions = lines.flatMap(line => {
    const match = /^([A-Z]+) (.+)$/.exec(line)
    return match === null ? [] : [{ name: match[1] ?? '', value: match[2] ?? '' }]
  })
  const starts = instructions.flatMap(({ name: it }, index) => (it === 'FROM' ? [index] : []))
  return starts.map((start, index) => ({
    from: instructions[start]?.value ?? '',
    instructions: instructions.slice(start + 1, starts[index + 1]),
  }))
}

const valuesOf = (stage: Stage | undefined, name: string): string[] =>
  (stage?.instructions ?? []).filter(it => it.name === name).map(it => it.value)

describe.each(images)('%s.Dockerfile', (name, config) => {
  test('copies only what is in the repository', async () => {
    const [build] = await stagesOf(name)
    const sources = valuesOf(build, 'COPY').flatMap(value => value.split(' ').slice(0, -1))
    expect(sources).toContain('package-lock.json')
    for (const source of sources) await access(join(project, source))
  })

  test('builds with the command that packs the archive, on the Node that the project asks for', async () => {
    const [build] = await stagesOf(name)
    expect(valuesOf(build, 'RUN')).toEqual(['npm ci', `npm run image -- --rootfs /rootfs ${name}`])
    const { engines, scripts } = JSON.parse(await text('package.json')) as {
      engines: { node: string }
      scripts: Record<string, string>
    }
    const file = await text(`deploy/docker/${name}.Dockerfile`)
    expect(file).toContain(`--build-arg BASE=node:${engines.node.replace('>=', '')}-trixie@sha256:`)
    expect(scripts['image']).toBe('node images/main.ts')
  })

  test('D10.base: is built on nothing that a tag could move', async () => {
    const file = await text(`deploy/docker/${name}.Dockerfile`)
    // No default: docker then refuses to build, because the name is empty.
    expect(file).toMatch(/^ARG BASE$/m)
    expect((await stagesOf(name)).map(({ from }) => from)).toEqual([`\${BASE} AS build`, 'scratch'])
  })

  test('ends from scratch with the settings of the archive', async () => {
    const final = (await stagesOf(name)).at(-1)
    const unquoted = (value: string): string => value.replaceAll('"', '')
    expect(final?.from).toBe('scratch')
    expect({
      entrypoint: valuesOf(final, 'ENTRYPOINT').map(it => JSON.parse(it) as string[])[0],
      cmd: valuesOf(final, 'CMD').map(it => JSON.parse(it) as string[])[0],
      env: valuesOf(final, 'ENV'),
      user: valuesOf(final, 'USER')[0],
      workingDir: valuesOf(final, 'WORKDIR')[0],
      exposedPorts: valuesOf(final, 'EXPOSE'),
      labels: Object.fromEntries(valuesOf(final, 'LABEL').map(it => unquoted(it).split('='))),
    }).toEqual({ cmd: undefined, ...config })
  })
})
