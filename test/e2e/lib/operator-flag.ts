/** Starts the operator under test with and without a flag, as a component of the installation does. */
import { kubectl } from './cluster.ts'
import { system } from './world.ts'

const args = '/spec/template/spec/containers/0/args'
const operator = ['-n', system, 'deployment/understudy-operator'] as const

async function patched(patch: object): Promise<void> {
  await kubectl('patch', ...operator, '--type=json', '-p', JSON.stringify([patch]))
  await kubectl('rollout', 'status', ...operator, '--timeout=240s')
}

/** Resolves when the operator runs with the flag. */
export const withFlag = (flag: string): Promise<void> =>
  patched({ op: 'add', path: `${args}/-`, value: flag })

/** Resolves when the operator runs without the flag. */
export async function withoutFlag(flag: string): Promise<void> {
  const all: unknown = JSON.parse(
    await kubectl('get', ...operator, '-o', 'jsonpath={.spec.template.spec.containers[0].args}'),
  )
  const value = Array.isArray(all) ? all.filter(each => each !== flag) : []
  await patched({ op: 'replace', path: args, value })
}
