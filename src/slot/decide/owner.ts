/** The object to which slots belong, with their records, pods and endpoints. */
export interface Owner {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** The reference that makes an owner the controller of another object, which is deleted after it. */
export const controllerReference = ({ apiVersion, kind, name, uid }: Owner) =>
  ({ apiVersion, kind, name, uid, controller: true }) as const
