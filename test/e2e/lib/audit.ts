import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** The API server's record of one request; see audit.k8s.io/v1 Event. */
interface AuditEvent {
  readonly stage: string
  readonly verb: string
  readonly user: { readonly username: string }
  readonly requestURI: string
  readonly objectRef?: {
    readonly apiGroup?: string
    readonly resource?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly responseStatus?: { readonly code?: number; readonly message?: string }
  readonly annotations?: Readonly<Record<string, string>>
}

export interface OperatorRequests {
  /** Every right that was used, as `group/resource[/subresource][/name] verb`, with and without the name. */
  readonly used: ReadonlySet<string>
  /** Requests that RBAC or a policy of deploy/admission refused, each with the reason. */
  readonly denied: readonly string[]
  readonly total: number
}

const operator = 'system:serviceaccount:understudy-system:understudy-operator'

/** Returns the operator's requests since the cluster came up. */
export async function operatorRequests(auditLogPath: string): Promise<OperatorRequests> {
  const used = new Set<string>()
  const denied: string[] = []
  let total = 0
  for await (const line of createInterface(createReadStream(auditLogPath))) {
    // The last line may be incomplete.
    if (!line.includes(operator) || !line.endsWith('}')) continue
    const { stage, verb, user, requestURI, objectRef, responseStatus, annotations } = JSON.parse(
      line,
    ) as AuditEvent
    if (user.username !== operator || stage === 'RequestReceived') continue
    total += 1
    const decision = annotations?.['authorization.k8s.io/decision']
    const message = responseStatus?.message ?? ''
    // The API server finds the owner of the object in a cache, which may not have it yet: the operator tries again.
    const isEarly = message.includes('no params found for policy binding')
    const byPolicy = message.includes("ValidatingAdmissionPolicy 'understudy-") && !isEarly
    if (byPolicy || decision === 'forbid' || (responseStatus?.code === 403 && decision !== 'allow'))
      denied.push(`${verb} ${requestURI}: ${decision}, ${message}`)
    if (!objectRef) continue
    const { apiGroup = '', resource = '', subresource, name } = objectRef
    const what = [apiGroup, resource, ...(subresource ? [subresource] : [])].join('/')
    used.add(`${what} ${verb}`)
    if (name) used.add(`${what}/${name} ${verb}`)
  }
  return { used, denied, total }
}
