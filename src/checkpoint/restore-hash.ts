/** Decides whether the memory of a pod made from one template can be restored in a pod made from another. */
import { createHash } from 'node:crypto'
import type { PodTemplate } from '../api/backuppodset.ts'

/**
 * Hashes everything that restored memory depends on: images, commands, arguments, mounts with their volumes, and
 * security contexts. All other fields of a template (labels, resources, probes, environment) may change without loss of
 * memory. The input is the set's template as the API server stores it, never a pod, to which admission adds mounts.
 * @param saved names of the containers whose memory is kept; absent: all.
 * @returns 16 hex digits, fit for a label.
 */
export function restoreHash(template: PodTemplate, saved?: readonly string[]): string {
  const spec = template.spec
  const isWhole = (spec?.containers ?? []).every(({ name }) => saved?.includes(name) ?? true)
  const containers = (spec?.containers ?? []).map(container => ({
    name: container.name,
    image: container.image,
    command: container.command,
    args: container.args,
    mounts: container.volumeMounts,
    devices: container.volumeDevices,
    securityContext: container.securityContext,
  }))
  const mounted = new Set(containers.flatMap(({ mounts }) => (mounts ?? []).map(mount => mount.name)))
  return createHash('sha256')
    .update(
      canonical({
        securityContext: spec?.securityContext,
        runtimeClassName: spec?.runtimeClassName,
        volumes: (spec?.volumes ?? []).filter(volume => mounted.has(volume.name)),
        containers,
        saved: isWhole ? undefined : [...(saved ?? [])].sort(),
      }),
    )
    .digest('hex')
    .slice(0, 16)
}

/**
 * JSON with sorted keys and without fields that are undefined, null or empty: the same whether a client wrote `[]` or
 * nothing.
 */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined && field !== null)
    .filter(([, field]) => !Array.isArray(field) || field.length > 0)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`)
  return `{${fields.join(',')}}`
}
