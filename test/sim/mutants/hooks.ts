/** Loaded before everything else: reverts one fix in the source text of a module, in memory only. */
import { registerHooks } from 'node:module'
import type { Mutation } from './mutant.ts'

const mutations = JSON.parse(process.env['SIM_MUTATIONS'] ?? '[]') as readonly Mutation[]

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    const wanted = mutations.filter(({ file }) => url.endsWith(`/${file}`))
    if (wanted.length === 0 || loaded.source == null) return loaded
    let source = loaded.source.toString()
    for (const { file, find, replace } of wanted) {
      if (source.split(find).length !== 2)
        throw new Error(`${file} has not exactly one place that reads: ${find}`)
      source = source.replace(find, () => replace)
    }
    return { ...loaded, source }
  },
})
