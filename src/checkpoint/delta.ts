/** What travels between nodes: a generation as its difference to an earlier one. */
export { applyDelta } from './delta/apply.ts'
export { encodeDelta } from './delta/encode.ts'
