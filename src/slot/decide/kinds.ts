/**
 * True if a pod can be given memory: only memory that was saved from pods with the same restore hash. Pods and memory
 * made before hashes existed have none, and count as fitting; agents check against the generation itself in any case.
 */
export const fitsMemory = (pod: string | undefined, memory: string | undefined): boolean =>
  pod === undefined || memory === undefined || pod === memory
