import podSchema from '../../../crds/pod-template.schema.json' with { type: 'json' }

export type Schema = { readonly [key: string]: unknown }

/** Returns the schema of a PodSpec, as crds/pod-template.ts has made it from Kubernetes' own OpenAPI document. */
export const readPodSchema = (): Schema => podSchema as Schema
