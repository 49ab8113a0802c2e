import type { Bench } from './bench.ts'
import { paper } from './paper/paper.ts'
import { wake } from './wake/wake.ts'

export const benches: readonly Bench[] = [paper, wake]
