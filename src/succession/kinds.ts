/**
 * Whether a pod can be given memory: only what was saved of pods with the same restore hash. What was made before hashes
 * were written says nothing; agents compare with the generation itself in any case.
 */
export const fitsMemory = (pod: string | undefined, memory: string | undefined): boolean =>
  pod === undefined || memory === undefined || pod === memory
