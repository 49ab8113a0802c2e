import { setFlagsFromString } from 'node:v8'

/**
 * Generations pass through this process in buffers, which V8 counts apart from its heap: beside a heap as small as this
 * one it collects all garbage whenever some ten megabytes of them were made, and half of what a refresh costs is that.
 * Counted together with the heap they are collected when there are many. See docs/adr/0072, where it is measured.
 */
export function countBuffersAsHeap(): void {
  setFlagsFromString('--external-memory-accounted-in-global-limit')
}
