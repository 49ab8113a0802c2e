import { run } from '../../build/run.ts'

const script = `
  import { readFileSync } from 'node:fs'
  const [module, name, given] = process.argv.slice(1)
  const { [name]: act } = await import(module)
  const peakKiB = () => Number(/^VmHWM:\\s+(\\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1])
  const before = peakKiB()
  const result = await act(...JSON.parse(given))
  console.log(JSON.stringify({ result, grownKiB: peakKiB() - before }))
`

/**
 * Calls an exported function of a module in a process of its own, and returns the result and how far the peak of its memory
 * rose. A worker's own peak proves nothing: a child inherits `maxRSS` from its parent.
 */
export async function inOwnProcess(
  module: URL,
  name: string,
  ...given: readonly unknown[]
): Promise<{ readonly result: unknown; readonly grownKiB: number }> {
  const words = ['--input-type=module', '-e', script, module.href, name, JSON.stringify(given)]
  return JSON.parse(await run(process.execPath, words))
}
