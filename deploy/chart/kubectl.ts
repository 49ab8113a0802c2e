/** The kubectl of the user, if it can build the kustomizations: to build one from source takes minutes. */
import { parse } from 'yaml'
import { run } from '../../build/run.ts'

/** Older ones have a kustomize that does not know all fields in use here. */
const since = [1, 30] as const

/** @returns the program if it runs and is new enough */
export async function usableKubectl(program = 'kubectl', signal?: AbortSignal): Promise<string | undefined> {
  try {
    const printed = await run(program, ['version', '--client', '--output', 'yaml'], signal ? { signal } : {})
    const { clientVersion } = parse(printed) as { readonly clientVersion?: { readonly gitVersion?: string } }
    return isNewEnough(clientVersion?.gitVersion) ? program : undefined
  } catch (error) {
    if (signal?.aborted === true) throw error
    return undefined
  }
}

function isNewEnough(version = ''): boolean {
  const [, major = '', minor = ''] = /^v(\d+)\.(\d+)\./.exec(version) ?? []
  return Number(major) > since[0] || (Number(major) === since[0] && Number(minor) >= since[1])
}
