/** Transfer of a generation between nodes, as its difference to an earlier generation. */
export { applyDelta } from './delta/apply.ts'
export { encodeDelta } from './delta/encode.ts'
